"""``MongoClient.append_metadata`` passes the prose tests of the handshake specification."""

from __future__ import annotations

import itertools

import bson
import gevent
import pytest

from gmongo import MongoClient
from gmongo.driver_info import DriverInfo
from tests.support.scripted_server import ScriptedServer

LIBRARY = DriverInfo("library", "1.2", "Library Platform")


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


def metadata_of_new_connection(server, client):
    """Let the client open a connection. Return the field `client` of the handshake."""
    # Let the idle connection expire, so that the client opens a new connection.
    gevent.sleep(0.005)
    client.admin.command("ping")
    connection = server.connections_of("ping")[-1]
    return next(
        each.command["client"] for each in server.received if each.name == "handshake" and each.connection == connection
    )


def appended_fields(metadata):
    """Return the texts that the client has appended to the name, version and platform of the driver."""
    fields = (metadata["driver"]["name"], metadata["driver"]["version"], metadata["platform"])
    return tuple(field.partition("|")[2] for field in fields)


def fields_without_driver_and_platform(metadata):
    return {name: metadata[name] for name in metadata if name not in ("driver", "platform")}


VERSIONS, PLATFORMS = ("2.0", None), ("Framework Platform", None)


@pytest.mark.parametrize("in_constructor", [True, False], ids=["constructor", "append_metadata"])
@pytest.mark.parametrize(("version", "platform"), list(itertools.product(VERSIONS, PLATFORMS)))
def test_append_metadata_extends_name_version_and_platform(server, in_constructor, version, platform):
    with MongoClient(*server.address, maxIdleTimeMS=1, driver=LIBRARY if in_constructor else None) as client:
        if not in_constructor:
            client.append_metadata(LIBRARY)
        before = metadata_of_new_connection(server, client)
        assert appended_fields(before) == LIBRARY
        client.append_metadata(DriverInfo("framework", version, platform))
        after = metadata_of_new_connection(server, client)
        assert appended_fields(after) == (
            "library|framework",
            f"1.2|{version}" if version else "1.2",
            f"Library Platform|{platform}" if platform else "Library Platform",
        )
        assert fields_without_driver_and_platform(after) == fields_without_driver_and_platform(before)


@pytest.mark.parametrize("in_constructor", [True, False], ids=["constructor", "append_metadata"])
def test_equal_driver_metadata_is_appended_only_once(server, in_constructor):
    with MongoClient(*server.address, maxIdleTimeMS=1, driver=LIBRARY if in_constructor else None) as client:
        for _ in range(2):
            client.append_metadata(DriverInfo(*LIBRARY))
        assert appended_fields(metadata_of_new_connection(server, client)) == LIBRARY


VARIANTS = list(itertools.product(("library", "framework"), ("1.2", "2.0"), ("Library Platform", "Framework Platform")))


@pytest.mark.parametrize("info", [variant for variant in VARIANTS if variant != tuple(LIBRARY)])
def test_metadata_that_differs_in_any_field_is_appended_completely(server, info):
    with MongoClient(*server.address, maxIdleTimeMS=1) as client:
        client.append_metadata(LIBRARY)
        client.append_metadata(DriverInfo(*info))
        fields = appended_fields(metadata_of_new_connection(server, client))
        assert fields == tuple(f"{first}|{second}" for first, second in zip(LIBRARY, info, strict=True))


def test_open_connection_does_not_send_appended_metadata(server):
    with MongoClient(*server.address) as client:
        client.admin.command("ping")
        connections = server.connections_of("handshake")
        client.append_metadata(LIBRARY)
        client.admin.command("ping")
        assert server.connections_of("ping")[0] == server.connections_of("ping")[1]
        assert len(server.connections_of("handshake")) == len(connections)


def test_appended_metadata_is_not_shared_between_clients(server):
    with MongoClient(*server.address) as one, MongoClient(*server.address, maxIdleTimeMS=1) as other:
        one.append_metadata(LIBRARY)
        assert appended_fields(metadata_of_new_connection(server, other)) == ("", "", "")


def test_appended_metadata_is_truncated_to_512_bytes(server):
    with MongoClient(*server.address, maxIdleTimeMS=1) as client:
        client.append_metadata(DriverInfo("library", "1", "p" * 600))
        metadata = metadata_of_new_connection(server, client)
        assert len(bson.encode(metadata)) <= 512
        assert metadata["driver"]["name"] == "gmongo|library"


@pytest.mark.parametrize("info", [None, "library", ("library", "1", None)])
def test_append_metadata_with_value_of_other_type_raises_type_error(server, info):
    with MongoClient(*server.address) as client, pytest.raises(TypeError, match="DriverInfo"):
        client.append_metadata(info)

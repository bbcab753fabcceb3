"""MongoClient.append_metadata: the prose tests of the handshake specification."""

from __future__ import annotations

import itertools

import bson
import gevent
import pytest

from gmongo import MongoClient
from gmongo.driver_info import DriverInfo
from tests.support.single import ScriptedServer

LIBRARY = DriverInfo("library", "1.2", "Library Platform")


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


def metadata_of_a_new_connection(server, client):
    """What a client tells of itself on a connection that it makes for a ping."""
    gevent.sleep(0.005)  # longer than connections may be idle
    client.admin.command("ping")
    connection = server.connections_of("ping")[-1]
    return next(
        each.command["client"] for each in server.received if each.name == "handshake" and each.connection == connection
    )


def appended(metadata):
    """What has been added to name, version and platform of the driver."""
    fields = (metadata["driver"]["name"], metadata["driver"]["version"], metadata["platform"])
    return tuple(field.partition("|")[2] for field in fields)


def rest(metadata):
    return {name: metadata[name] for name in metadata if name not in ("driver", "platform")}


VERSIONS, PLATFORMS = ("2.0", None), ("Framework Platform", None)


@pytest.mark.parametrize("at_first", [True, False], ids=["with the constructor", "later"])
@pytest.mark.parametrize(("version", "platform"), list(itertools.product(VERSIONS, PLATFORMS)))
def test_metadata_is_appended(server, at_first, version, platform):
    with MongoClient(*server.address, maxIdleTimeMS=1, driver=LIBRARY if at_first else None) as client:
        if not at_first:
            client.append_metadata(LIBRARY)
        before = metadata_of_a_new_connection(server, client)
        assert appended(before) == LIBRARY
        client.append_metadata(DriverInfo("framework", version, platform))
        after = metadata_of_a_new_connection(server, client)
        assert appended(after) == (
            "library|framework",
            f"1.2|{version}" if version else "1.2",
            f"Library Platform|{platform}" if platform else "Library Platform",
        )
        assert rest(after) == rest(before)


@pytest.mark.parametrize("at_first", [True, False], ids=["with the constructor", "later"])
def test_the_same_is_appended_once(server, at_first):
    with MongoClient(*server.address, maxIdleTimeMS=1, driver=LIBRARY if at_first else None) as client:
        for _ in range(2):
            client.append_metadata(DriverInfo(*LIBRARY))
        assert appended(metadata_of_a_new_connection(server, client)) == LIBRARY


OTHERS = list(itertools.product(("library", "framework"), ("1.2", "2.0"), ("Library Platform", "Framework Platform")))


@pytest.mark.parametrize("info", [other for other in OTHERS if other != tuple(LIBRARY)])
def test_what_differs_in_a_field_is_appended_whole(server, info):
    with MongoClient(*server.address, maxIdleTimeMS=1) as client:
        client.append_metadata(LIBRARY)
        client.append_metadata(DriverInfo(*info))
        found = appended(metadata_of_a_new_connection(server, client))
        assert found == tuple(f"{one}|{other}" for one, other in zip(LIBRARY, info, strict=True))


def test_metadata_is_not_sent_again_on_an_open_connection(server):
    with MongoClient(*server.address) as client:
        client.admin.command("ping")
        connections = server.connections_of("handshake")
        client.append_metadata(LIBRARY)
        client.admin.command("ping")
        assert server.connections_of("ping")[0] == server.connections_of("ping")[1]
        assert len(server.connections_of("handshake")) == len(connections)


def test_clients_do_not_share_what_is_appended(server):
    with MongoClient(*server.address) as one, MongoClient(*server.address, maxIdleTimeMS=1) as other:
        one.append_metadata(LIBRARY)
        assert appended(metadata_of_a_new_connection(server, other)) == ("", "", "")


def test_the_limit_of_512_bytes_holds(server):
    with MongoClient(*server.address, maxIdleTimeMS=1) as client:
        client.append_metadata(DriverInfo("library", "1", "p" * 600))
        metadata = metadata_of_a_new_connection(server, client)
        assert len(bson.encode(metadata)) <= 512
        assert metadata["driver"]["name"] == "gmongo|library"


@pytest.mark.parametrize("info", [None, "library", ("library", "1", None)])
def test_only_a_driver_info_is_taken(server, info):
    with MongoClient(*server.address) as client, pytest.raises(TypeError, match="DriverInfo"):
        client.append_metadata(info)

"""``MongoClient.append_metadata`` extends the metadata of new connections."""

from __future__ import annotations

import itertools

import gevent
import pytest

from gmongo import MongoClient
from gmongo.driver_info import DriverInfo
from tests.support.scripted_server import ScriptedServer

LIBRARY_INFO = DriverInfo("library", "1.2", "Library Platform")


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
    """Return the texts that the client has appended to the name, version and platform of the
    driver.
    """
    fields = (metadata["driver"]["name"], metadata["driver"]["version"], metadata["platform"])
    return tuple(field.partition("|")[2] for field in fields)


@pytest.mark.parametrize("in_constructor", [True, False], ids=["constructor", "append_metadata"])
def test_equal_driver_metadata_is_appended_only_once(server, in_constructor):
    with MongoClient(*server.address, maxIdleTimeMS=1, driver=LIBRARY_INFO if in_constructor else None) as client:
        for _ in range(2):
            client.append_metadata(DriverInfo(*LIBRARY_INFO))
        assert appended_fields(metadata_of_new_connection(server, client)) == LIBRARY_INFO


VARIANTS = list(itertools.product(("library", "framework"), ("1.2", "2.0"), ("Library Platform", "Framework Platform")))


@pytest.mark.parametrize("info", [variant for variant in VARIANTS if variant != tuple(LIBRARY_INFO)])
def test_metadata_that_differs_in_any_field_is_appended_completely(server, info):
    with MongoClient(*server.address, maxIdleTimeMS=1) as client:
        client.append_metadata(LIBRARY_INFO)
        client.append_metadata(DriverInfo(*info))
        fields = appended_fields(metadata_of_new_connection(server, client))
        assert fields == tuple(f"{first}|{second}" for first, second in zip(LIBRARY_INFO, info, strict=True))


def test_appended_metadata_is_not_shared_between_clients(server):
    with MongoClient(*server.address) as one, MongoClient(*server.address, maxIdleTimeMS=1) as other:
        one.append_metadata(LIBRARY_INFO)
        assert appended_fields(metadata_of_new_connection(server, other)) == ("", "", "")


def test_appended_metadata_replaces_fields_that_no_longer_fit(server, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with MongoClient(*server.address, maxIdleTimeMS=1) as client:
        assert "env" in metadata_of_new_connection(server, client)
        client.append_metadata(DriverInfo("x" * 350))
        assert "env" not in metadata_of_new_connection(server, client)


@pytest.mark.parametrize("info", [None, "library", ("library", "1", None)])
def test_append_metadata_with_value_that_is_no_driver_info_raises_type_error(server, info):
    with MongoClient(*server.address) as client, pytest.raises(TypeError, match="DriverInfo"):
        client.append_metadata(info)

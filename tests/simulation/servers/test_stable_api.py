"""Tests of the Stable API on simulated servers."""

from __future__ import annotations

import pytest

from gmongo.testing import Deployment
from tests.simulation.servers.wire_client import WireClient, standalone_client

STRICT = {"apiVersion": "1", "apiStrict": True}


@pytest.fixture(scope="module")
def client():
    parameters = {"acceptApiVersion2": True}
    with (
        Deployment.standalone(parameters=parameters) as deployment,
        WireClient(deployment.members[0].address) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("command", "code", "name", "message"),
    [
        ({"ping": 1, "apiVersion": "3"}, 322, "APIVersionError", "API version must be"),
        ({"testVersion2": 1, **STRICT}, 323, "APIStrictError", "command testVersion2 is not in API Version 1"),
        ({"distinct": "c", "key": "x", **STRICT}, 323, "APIStrictError", "command distinct is not in API Version 1"),
        ({"find": "c", "tailable": True, **STRICT}, 323, "APIStrictError", "'tailable'"),
        ({"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], **STRICT}, 323, "APIStrictError", "$listLocal"),
        ({"createIndexes": "c", "indexes": [{"key": {"a": "text"}}], **STRICT}, 323, "APIStrictError", "text"),
        (
            {"testDeprecationInVersion2": 1, "apiVersion": "2", "apiDeprecationErrors": True},
            324,
            "APIDeprecationError",
            "command testDeprecationInVersion2 is deprecated in API Version 2",
        ),
        ({"testDeprecation": 1, "apiVersion": "1", "apiDeprecationErrors": True}, 324, "APIDeprecationError", ""),
        ({"ping": 1, "apiStrict": True}, 4886600, "Location4886600", "without passing apiVersion"),
    ],
)
def test_violation_of_stable_api_returns_error(client, command, code, name, message):
    reply = client.run(command)
    assert (reply["code"], reply["codeName"]) == (code, name)
    assert message in reply["errmsg"]


@pytest.mark.parametrize(
    "command",
    [
        {"ping": 1, **STRICT},
        {"hello": 1, **STRICT},
        {"find": "c", **STRICT},
        {"count": "c", **STRICT},
        {"testDeprecation": 1, **STRICT},
        {"testVersion2": 1, "apiVersion": "2", "apiStrict": True},
        {"distinct": "c", "key": "x", "apiVersion": "1"},
    ],
)
def test_command_of_stable_api_succeeds(client, command):
    assert client.run(command)["ok"] == 1


def test_api_version_2_is_refused_without_server_parameter():
    with Deployment.standalone() as deployment, WireClient(deployment.members[0].address) as client:
        assert client.run({"ping": 1, "apiVersion": "2"})["code"] == 322


def test_server_that_requires_api_version_refuses_commands_without_version():
    with standalone_client(parameters={"requireApiVersion": True}) as client:
        assert client.run({"hello": 1})["code"] == client.run({"ping": 1})["code"] == 498870
        assert client.run({"hello": 1, "apiVersion": "1"})["ok"] == 1
        assert client.run({"setParameter": 1, "requireApiVersion": False, "apiVersion": "1"})["was"] is True
        assert client.run({"ping": 1})["ok"] == 1

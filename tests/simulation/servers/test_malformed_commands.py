"""Whatever a command looks like, there is a reply, and the member lives on."""

from __future__ import annotations

import random

import pytest
from bson import ObjectId

from gmongo.testing import Deployment
from tests.simulation.servers.wire_client import WireClient

NAMES = [
    "authenticate",
    "configureFailPoint",
    "createUser",
    "find",
    "getParameter",
    "hello",
    "insert",
    "isMaster",
    "killCursors",
    "replSetFreeze",
    "replSetStepDown",
    "saslContinue",
    "saslStart",
    "setParameter",
    "update",
    "usersInfo",
]
FIELDS = [
    "$clusterTime",
    "$readPreference",
    "apiVersion",
    "client",
    "compression",
    "conversationId",
    "data",
    "documents",
    "lsid",
    "maxTimeMS",
    "mechanism",
    "mode",
    "payload",
    "pwd",
    "readConcern",
    "roles",
    "saslSupportedMechs",
    "speculativeAuthenticate",
    "txnNumber",
    "updates",
    "writeConcern",
]
VALUES = [0, -1, 2**40, 1.5, None, True, "x", "", [], [{}], {}, {"a": 1}, b"", ObjectId()]


@pytest.mark.parametrize("seed", range(20))
def test_any_command_has_a_reply(seed):
    chance = random.Random(seed)
    with Deployment.replica_set() as deployment, WireClient(deployment.members[0].address) as client:
        for _ in range(25):
            command = {chance.choice(NAMES): chance.choice(VALUES)}
            command.update((chance.choice(FIELDS), chance.choice(VALUES)) for _ in range(chance.randrange(4)))
            reply = client.run(command)
            assert reply["ok"] or (reply["errmsg"] and bool(reply.get("code")) == bool(reply.get("codeName")))
            deployment.set_fail_point("failCommand", "off")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ({"createUser": {}, "pwd": "x", "roles": []}, 14),
        ({"updateUser": {}, "pwd": "y"}, 14),
        ({"dropUser": {}}, 14),
        ({"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n,,n=u,r=abc", "options": 1}, 14),
        ({"count": "c", "skip": 1e20}, None),
    ],
)
def test_command_with_a_value_of_a_wrong_type_is_no_internal_error(command, code):
    with Deployment.replica_set(members=1) as deployment, WireClient(deployment.members[0].address) as client:
        assert client.run(command, "admin").get("code") == code

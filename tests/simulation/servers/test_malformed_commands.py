"""Tests that no malformed command and no malformed operand causes an internal error of the
simulation.
"""

from __future__ import annotations

import datetime
from itertools import islice

import bson
import pytest
from bson import Binary, Code, Decimal128, Int64, MinKey, ObjectId, Regex, Timestamp

from gmongo.testing import Deployment
from gmongo.testing.command import CommandError
from gmongo.testing.store.expressions.compiling import OPERATORS as EXPRESSIONS
from gmongo.testing.store.fields import TABLE
from gmongo.testing.store.operators import ARRAY_OPERATORS, ELEMENT_OPERATORS, NEGATIONS
from gmongo.testing.store.stages import STAGES
from gmongo.testing.store.update_operators import UPDATE_OPERATORS
from tests.simulation.fields.cases import random_cases
from tests.simulation.fields.compare import Client
from tests.simulation.servers.wire_client import WireClient
from tests.simulation.store.shell import replica_set
from tests.support.cases import with_cases

VALUES = [
    None, True, 0, -1, 1.5, float("nan"), "a", "$a", "", {}, [], {"a": 1}, {"$a": 1}, [1, "a"], Int64(5),
    Decimal128("1"), Regex("a"), ObjectId("0123456789abcdef01234567"), Timestamp(1, 1),
    datetime.datetime(2020, 1, 1), MinKey(), Code("x"), Binary(b"a", 3), {"x": {"y": [1, {"z": 1}]}}, {"$literal": 1}
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_malformed_command_returns_no_internal_error(seed):
    with Deployment.replica_set() as deployment, Client(deployment.members[0].address) as client:
        client.reset()
        for case in islice(random_cases(seed), 250):
            reply = client.reply_to(case.encode())
            assert reply.get("ok") or (reply["errmsg"] and bool(reply.get("code")) == bool(reply.get("codeName")))
            assert reply.get("code") != 1
            deployment.set_fail_point("failCommand", "off")


@with_cases
def test_command_with_unusual_value_returns_expected_code(command, code):
    with Deployment.replica_set(members=1) as deployment, WireClient(deployment.members[0].address) as client:
        assert client.run(command, "admin").get("code") == code


@pytest.fixture
def shell():
    shell = replica_set()
    shell.insert({"_id": 1, "a": 1, "b": [1, 2, {"c": 1}], "s": "x", "d": {"e": 1}}, {"_id": 2, "a": [3, 4]})
    return shell


def succeeds(call, *args, **kwargs):
    try:
        bson.encode({"reply": call(*args, **kwargs)})
    except CommandError:
        return False
    return True


# The random cases also run on servers of version 6.0, and therefore contain no bulkWrite command.
def test_malformed_field_of_bulk_write_returns_no_internal_error(shell):
    needed = {"ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "db.c"}]}
    for field in TABLE["bulkWrite"].fields:
        for value in VALUES:
            succeeds(shell, "bulkWrite", value if field == "bulkWrite" else 1, "admin", **{**needed, field: value})
    assert not succeeds(shell, "bulkWrite", 1, "admin", **needed, noSuchField=1)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_malformed_operand_returns_no_internal_error(shell, value):
    outcomes = set()
    for operator in [*ELEMENT_OPERATORS, *NEGATIONS, *ARRAY_OPERATORS, "$elemMatch", "$not", "$all"]:
        outcomes.add(succeeds(shell.find, filter={"b": {operator: value}}))
    for operator in UPDATE_OPERATORS:
        for path in ("b", "s", "b.$[]"):
            outcomes.add(succeeds(shell.update, {"_id": 1}, {operator: {path: value}}))
    for stage in STAGES:
        outcomes.add(succeeds(shell.aggregate, {stage: value}))
    for operator in EXPRESSIONS:
        for operand in (value, [value, value]):
            outcomes.add(succeeds(shell.aggregate, {"$project": {"r": {operator: operand}}}))
    assert outcomes == {True, False}
    assert isinstance(value, dict | None) or not succeeds(shell.find, lsid=value)


@pytest.mark.parametrize("operator", ["$let", "$map", "$filter"])
def test_missing_operand_is_refused(shell, operator):
    assert not succeeds(shell.aggregate, {"$project": {"r": {operator: {"input": "$b"}}}})

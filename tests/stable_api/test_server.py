"""The server's side of the Stable API, as the simulated deployment plays it."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.codec_options import CodecOptions

from gmongo.errors import AutoReconnect, OperationFailure
from gmongo.server_api import ServerApi
from gmongo.stable_api.facts import COMMANDS, DEPRECATED
from gmongo.testing import Deployment
from gmongo.testing.simulation import stable_api as simulated
from tests.simulation.servers.wire_client import WireClient
from tests.stable_api.workload import everything
from tests.support.fail_points import fail

RELEASES = ("8.0", "8.2")


def code_of(action: Any) -> int | None:
    """The code that an action fails with."""
    with pytest.raises(OperationFailure) as caught:
        action()
    code: int | None = caught.value.code
    return code


def hello_of(version: str, connect: Any) -> dict[str, Any]:
    with Deployment.replica_set(1, version=version) as deployment:
        reply: dict[str, Any] = connect(deployment).admin.command("hello")
    return reply


@pytest.mark.requirement("API-02", "API-46", "API-41")
def test_there_may_be_several_versions(connect: Any) -> None:
    with Deployment.replica_set(1, parameters={"acceptApiVersion2": True}) as deployment:
        run = connect(deployment).admin.command
        for version in ("1", "2"):
            assert run("testVersions1And2", apiVersion=version, apiStrict=True)["ok"] == 1
        assert run("testVersion2", apiVersion="2", apiStrict=True)["ok"] == 1
        assert code_of(lambda: run("testVersion2", apiVersion="1", apiStrict=True)) == 323
        assert code_of(lambda: run("ping", apiVersion="3")) == 322


@pytest.mark.requirement(
    "API-04", "API-05", "API-06", "API-07", "API-08", "API-09", "API-14", "API-17", "API-37", "API-39"
)
@pytest.mark.parametrize("release", RELEASES)
def test_the_same_application_runs_on_all_releases(release: str, connect: Any) -> None:
    api = ServerApi("1", strict=True, deprecation_errors=True)
    with Deployment.replica_set(1, version=release) as deployment:
        results = everything(connect(deployment, server_api=api))
    with Deployment.replica_set(1, version="8.0", users={"ada": "lovelace"}) as deployment:
        assert everything(connect(deployment, server_api=api)) == results


@pytest.mark.requirement("API-15")
def test_all_types_survive(deployment: Deployment, connect: Any) -> None:
    values = [
        1.5, "text", {"a": 1}, [1, 2], Binary(b"x", 5), ObjectId("a" * 24), True, None, Regex("a", "i"), Code("x"),
        7, Timestamp(1, 2), Int64(1 << 40), Decimal128("1.5"), MinKey(), MaxKey(),
    ]  # fmt: skip
    collection = connect(deployment, server_api=ServerApi("1")).db.c
    collection.insert_one({"_id": 1, "values": values})
    assert collection.find_one()["values"] == values
    with_options = collection.with_options(codec_options=CodecOptions(tz_aware=True))
    assert with_options.find_one()["values"] == values


@pytest.mark.requirement("API-16")
@pytest.mark.parametrize("release", RELEASES)
def test_message_types_stay(release: str, connect: Any) -> None:
    with Deployment.replica_set(1, version=release) as deployment:
        for options in ({}, {"compressors": "zlib"}):
            client = connect(deployment, server_api=ServerApi("1"), **options)
            client.db.c.insert_one({"text": "x" * 5000})
        assert client.db.c.count_documents({}) == 2


@pytest.mark.requirement("API-18", "API-10")
def test_wire_versions_only_grow(connect: Any) -> None:
    older, newer = (hello_of(version, connect) for version in RELEASES)
    assert newer["minWireVersion"] <= older["minWireVersion"]
    assert newer["maxWireVersion"] >= older["maxWireVersion"]
    assert older.keys() <= newer.keys()


@pytest.mark.requirement("API-12", "API-13")
@pytest.mark.parametrize(("code", "label"), [(91, "RetryableWriteError"), (11600, "RetryableWriteError"), (112, None)])
def test_codes_and_labels_stay(code: int, label: str | None, connect: Any) -> None:
    found = []
    for release in RELEASES:
        with Deployment.load_balanced(1, version=release) as deployment:
            client = connect(deployment, server_api=ServerApi("1"))
            fail(deployment, "insert", times=None, errorCode=code)
            with pytest.raises((OperationFailure, AutoReconnect)) as caught:
                client.db.c.insert_one({})
            found.append((caught.value.code, label is not None and caught.value.has_error_label(label)))  # type: ignore[attr-defined]
    assert found == [(code, label is not None)] * 2


@pytest.mark.requirement("API-36", "API-38")
def test_the_table_of_commands_is_that_of_the_manual() -> None:
    ours = {name for name in simulated._VERSION_1 if not name.startswith("test")}
    assert ours == {name for name in COMMANDS if not name.startswith("test")}
    for name, outside in simulated._FIELDS_OUTSIDE.items():
        assert not outside & COMMANDS[name].inside - {"exchange", "fromMongos", "needsMerge"}, name


@pytest.mark.requirement("API-40", "API-38", "API-46")
def test_unstable_parameters_are_refused_and_internal_ones_are_not(raw: Any) -> None:
    strict = {"apiVersion": "1", "apiStrict": True}
    assert raw("find", "c", **strict)["ok"] == 1
    assert code_of(lambda: raw("find", "c", returnKey=True, **strict)) == 323
    assert raw("find", "c", returnKey=True, apiVersion="1")["ok"] == 1
    assert code_of(lambda: raw("distinct", "c", key="a", **strict)) == 323


@pytest.mark.requirement("API-41", "API-42")
def test_what_is_deprecated_is_in_the_version_still(raw: Any) -> None:
    assert set(COMMANDS) >= DEPRECATED
    assert raw("testDeprecation", apiVersion="1", apiStrict=True)["ok"] == 1
    assert code_of(lambda: raw("testDeprecation", apiVersion="1", apiDeprecationErrors=True)) == 324


@pytest.mark.requirement("API-43", "API-49")
@pytest.mark.parametrize("name", ["hello", "ping", "endSessions", "find", "insert", "getMore", "killCursors"])
def test_all_commands_take_the_three_parameters(name: str, raw: Any) -> None:
    value, more = {
        "endSessions": ([], {}),
        "find": ("c", {}),
        "insert": ("c", {"documents": [{}]}),
        "getMore": (Int64(1), {"collection": "c"}),
        "killCursors": ("c", {"cursors": [Int64(1)]}),
    }.get(name, (1, {}))
    parameters = {"apiVersion": "1", "apiStrict": True, "apiDeprecationErrors": True}
    if name == "getMore":
        assert code_of(lambda: raw(name, value, **more, **parameters)) == 43  # not found, but understood
    else:
        assert raw(name, value, **more, **parameters)["ok"] == 1
    if name != "getMore":
        assert raw(name, value, **more)["ok"] == 1


@pytest.mark.requirement("API-48", "API-52", "API-53")
def test_the_version_chooses_the_behaviour(connect: Any) -> None:
    with Deployment.replica_set(1, parameters={"acceptApiVersion2": True}) as deployment:
        run = connect(deployment).admin.command
        deprecated = {"apiDeprecationErrors": True}
        assert code_of(lambda: run("testDeprecation", apiVersion="1", **deprecated)) == 324
        assert run("testDeprecation", apiVersion="2", **deprecated)["ok"] == 1
        assert run("testDeprecation")["ok"] == run("testDeprecation", apiVersion="1")["ok"] == 1


@pytest.mark.requirement("API-43", "API-49")
@pytest.mark.parametrize("flag", ["apiStrict", "apiDeprecationErrors"])
def test_flags_need_a_version(flag: str, raw: Any) -> None:
    assert code_of(lambda: raw("ping", **{flag: True})) == 4886600


@pytest.mark.requirement("API-50")
def test_a_version_may_be_demanded(connect: Any) -> None:
    # The first hello of a connection, too: https://jira.mongodb.org/browse/CDRIVER-3929
    with Deployment.replica_set(1, parameters={"requireApiVersion": True}) as deployment:
        assert connect(deployment, server_api=ServerApi("1")).admin.command("ping")["ok"] == 1
        with WireClient(deployment.members[0].address) as client:
            for name in ("hello", "isMaster", "ping", "getMore"):
                assert client.run({name: 1})["code"] == 498870
            assert client.run({"hello": 1, "apiVersion": "1"})["ok"] == 1


@pytest.mark.requirement("API-54", "API-56", "API-59")
def test_a_behaviour_may_be_deprecated_in_one_version_only(connect: Any) -> None:
    with Deployment.replica_set(1, parameters={"acceptApiVersion2": True}) as deployment:
        run = connect(deployment).admin.command
        name, errors = "testDeprecationInVersion2", {"apiDeprecationErrors": True}
        assert run(name, apiVersion="2")["ok"] == 1
        assert code_of(lambda: run(name, apiVersion="2", **errors)) == 324
        assert run(name, apiVersion="1")["ok"] == 1

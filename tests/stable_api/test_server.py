"""Simulated deployments implement the Stable API."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.codec_options import CodecOptions

from gmongo.errors import OperationFailure
from gmongo.server_api import ServerApi
from gmongo.stable_api.facts import COMMANDS
from gmongo.testing import Deployment
from gmongo.testing.simulation import stable_api as simulated
from tests.simulation.servers.wire_client import WireClient
from tests.stable_api.workload import run_workload

RELEASES = ("8.0", "8.2")


def error_code_of(action: Any) -> int | None:
    """Run an action that must raise an OperationFailure, and return the code of the error."""
    with pytest.raises(OperationFailure) as caught:
        action()
    code: int | None = caught.value.code
    return code


def hello_of(version: str, connect: Any) -> dict[str, Any]:
    with Deployment.replica_set(1, version=version) as deployment:
        reply: dict[str, Any] = connect(deployment).admin.command("hello")
    return reply


@pytest.mark.requirement("API-02", "API-46", "API-41")
def test_server_with_several_versions_checks_each_command(connect: Any) -> None:
    with Deployment.replica_set(1, parameters={"acceptApiVersion2": True}) as deployment:
        run = connect(deployment).admin.command
        for version in ("1", "2"):
            assert run("testVersions1And2", apiVersion=version, apiStrict=True)["ok"] == 1
        assert run("testVersion2", apiVersion="2", apiStrict=True)["ok"] == 1
        assert error_code_of(lambda: run("testVersion2", apiVersion="1", apiStrict=True)) == 323
        assert error_code_of(lambda: run("ping", apiVersion="3")) == 322


@pytest.mark.requirement(
    "API-04", "API-05", "API-06", "API-07", "API-08", "API-09", "API-14", "API-17", "API-37", "API-39"
)
@pytest.mark.parametrize("release", RELEASES)
def test_workload_has_equal_results_on_all_server_releases(release: str, connect: Any) -> None:
    api = ServerApi("1", strict=True, deprecation_errors=True)
    with Deployment.replica_set(1, version=release) as deployment:
        results = run_workload(connect(deployment, server_api=api))
    with Deployment.replica_set(1, version="8.0", users={"ada": "lovelace"}) as deployment:
        assert run_workload(connect(deployment, server_api=api)) == results


@pytest.mark.requirement("API-15")
def test_values_of_all_bson_types_are_stored_unchanged(deployment: Deployment, connect: Any) -> None:
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
def test_plain_and_compressed_messages_work_on_all_releases(release: str, connect: Any) -> None:
    with Deployment.replica_set(1, version=release) as deployment:
        for options in ({}, {"compressors": "zlib"}):
            client = connect(deployment, server_api=ServerApi("1"), **options)
            client.db.c.insert_one({"text": "x" * 5000})
        assert client.db.c.count_documents({}) == 2


@pytest.mark.requirement("API-18", "API-10")
def test_newer_release_supports_wire_versions_of_older_release(connect: Any) -> None:
    older, newer = (hello_of(version, connect) for version in RELEASES)
    assert newer["minWireVersion"] <= older["minWireVersion"]
    assert newer["maxWireVersion"] >= older["maxWireVersion"]
    assert older.keys() <= newer.keys()


@pytest.mark.requirement("API-36", "API-38")
def test_command_tables_of_server_and_audit_are_equal() -> None:
    simulated_names = {name for name in simulated._VERSION_1 if not name.startswith("test")}
    assert simulated_names == {name for name in COMMANDS if not name.startswith("test")}
    for name, outside in simulated._FIELDS_OUTSIDE.items():
        assert not outside & COMMANDS[name].inside - {"exchange", "fromMongos", "needsMerge"}, name


@pytest.mark.requirement("API-48", "API-52", "API-53")
def test_api_version_selects_deprecated_commands(connect: Any) -> None:
    with Deployment.replica_set(1, parameters={"acceptApiVersion2": True}) as deployment:
        run = connect(deployment).admin.command
        deprecated = {"apiDeprecationErrors": True}
        assert error_code_of(lambda: run("testDeprecation", apiVersion="1", **deprecated)) == 324
        assert run("testDeprecation", apiVersion="2", **deprecated)["ok"] == 1
        assert run("testDeprecation")["ok"] == run("testDeprecation", apiVersion="1")["ok"] == 1


@pytest.mark.requirement("API-50")
def test_simulated_server_may_require_api_version_in_every_command(connect: Any) -> None:
    # Even the first hello of a connection needs an API version: https://jira.mongodb.org/browse/CDRIVER-3929
    with Deployment.replica_set(1, parameters={"requireApiVersion": True}) as deployment:
        assert connect(deployment, server_api=ServerApi("1")).admin.command("ping")["ok"] == 1
        with WireClient(deployment.members[0].address) as client:
            for name in ("hello", "isMaster", "ping", "getMore"):
                assert client.run({name: 1})["code"] == 498870
            assert client.run({"hello": 1, "apiVersion": "1"})["ok"] == 1


@pytest.mark.requirement("API-54", "API-56", "API-59")
def test_command_may_be_deprecated_in_only_one_api_version(connect: Any) -> None:
    with Deployment.replica_set(1, parameters={"acceptApiVersion2": True}) as deployment:
        run = connect(deployment).admin.command
        name, errors = "testDeprecationInVersion2", {"apiDeprecationErrors": True}
        assert run(name, apiVersion="2")["ok"] == 1
        assert error_code_of(lambda: run(name, apiVersion="2", **errors)) == 324
        assert run(name, apiVersion="1")["ok"] == 1

"""Simulated deployments implement the Stable API."""

from __future__ import annotations

from typing import Any

import pytest

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


@pytest.mark.requirement("API-02", "API-46", "API-41")
def test_server_with_several_api_versions_checks_each_command(connect: Any) -> None:
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


@pytest.mark.requirement("API-36", "API-38")
def test_command_tables_of_server_and_audit_are_equal() -> None:
    simulated_names = {name for name in simulated._VERSION_1_COMMANDS if not name.startswith("test")}
    assert simulated_names == {name for name in COMMANDS if not name.startswith("test")}
    for name, outside in simulated._EXCLUDED_FIELDS.items():
        assert not outside & COMMANDS[name].inside - {"exchange", "fromMongos", "needsMerge"}, name


@pytest.mark.requirement("API-48", "API-52", "API-53")
def test_api_version_selects_deprecated_commands(connect: Any) -> None:
    with Deployment.replica_set(1, parameters={"acceptApiVersion2": True}) as deployment:
        run = connect(deployment).admin.command
        deprecation_errors = {"apiDeprecationErrors": True}
        assert error_code_of(lambda: run("testDeprecation", apiVersion="1", **deprecation_errors)) == 324
        assert run("testDeprecation", apiVersion="2", **deprecation_errors)["ok"] == 1
        assert run("testDeprecation")["ok"] == run("testDeprecation", apiVersion="1")["ok"] == 1


@pytest.mark.requirement("API-50")
def test_simulated_server_may_require_api_version_in_every_command(connect: Any) -> None:
    # Even the first hello of a connection needs an API version:
    # https://jira.mongodb.org/browse/CDRIVER-3929
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
        name, deprecation_errors = "testDeprecationInVersion2", {"apiDeprecationErrors": True}
        assert run(name, apiVersion="2")["ok"] == 1
        assert error_code_of(lambda: run(name, apiVersion="2", **deprecation_errors)) == 324
        assert run(name, apiVersion="1")["ok"] == 1

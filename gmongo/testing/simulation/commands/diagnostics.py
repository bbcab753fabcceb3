"""Diagnostic commands, such as ``buildInfo`` and ``ping``, and test commands of the Stable API."""

from __future__ import annotations

import os
import platform
from typing import Any

from gmongo import _random
from gmongo.testing.command import error
from gmongo.testing.simulation.call import Call
from gmongo.testing.unsupported import not_supported


def _reply_empty(call: Call) -> dict[str, Any]:
    return {}


def _get_build_info(call: Call) -> dict[str, Any]:
    return {
        "version": call.cluster.version_text, "gitVersion": "simulated by gmongo.testing",
        "modules": [], "versionArray": [*call.cluster.version, 0], "bits": 64, "debug": False,
        "maxBsonObjectSize": 16 * 1024 * 1024, "storageEngines": ["gmongo.testing"]
    }  # fmt: skip


def _get_host_info(call: Call) -> dict[str, Any]:
    system = {"hostname": call.member.address, "cpuArch": platform.machine(), "numCores": os.cpu_count() or 1}
    return {"system": system, "os": {"type": platform.system(), "name": platform.system()}, "extra": {}}


def _get_connection_status(call: Call) -> dict[str, Any]:
    users = call.connection.authentication.users
    auth_info = {
        "authenticatedUsers": [{"user": user.name, "db": user.database} for user in users],
        "authenticatedUserRoles": [role for user in users for role in user.roles],
    }
    return {"authInfo": auth_info}


def _get_my_uri(call: Call) -> dict[str, Any]:
    return {"you": f"{call.member.host}:{call.connection.peer_port}"}


def _get_log(call: Call) -> dict[str, Any]:
    if call.body[call.name] == "*":
        return {"names": ["global", "startupWarnings"]}
    if call.body[call.name] not in ("global", "startupWarnings"):
        raise error(96, f"No log named '{call.body[call.name]}'")
    return {"totalLinesWritten": 0, "log": []}


def _get_command_line(call: Call) -> dict[str, Any]:
    parameters = call.member.parameters
    allows_test_commands = int(parameters["enableTestCommands"])
    shown_parameters = {"enableTestCommands": allows_test_commands, **call.cluster.parameters}
    parsed_options: dict[str, Any] = {"setParameter": {**shown_parameters, "enableTestCommands": allows_test_commands}}
    argv = ["mongod", "--setParameter", f"enableTestCommands={shown_parameters['enableTestCommands']}"]
    if call.cluster.users.requires_authentication:
        parsed_options["security"] = {"authorization": "enabled"}
        argv.append("--auth")
    return {"argv": argv, "parsed": parsed_options}


def _fsync(call: Call) -> dict[str, Any]:
    if call.body.get("lock"):
        raise not_supported("an unimplemented administrative command", "fsync with lock")
    return {"numFiles": 1}


def _get_nonce(call: Call) -> dict[str, Any]:
    return {"nonce": _random.urandom(8).hex()}


def _run_api_test(call: Call) -> dict[str, Any]:
    if not call.member.parameters["enableTestCommands"]:
        raise error(59, f"no such command: '{call.name}'")
    return {}


_TEST_COMMANDS = ("testDeprecation", "testDeprecationInVersion2", "testVersion2", "testVersions1And2")
COMMANDS = {
    "buildInfo": _get_build_info, "buildinfo": _get_build_info, "connectionStatus": _get_connection_status,
    "fsync": _fsync, "getCmdLineOpts": _get_command_line, "getLog": _get_log, "getnonce": _get_nonce,
    "hostInfo": _get_host_info, "logRotate": _reply_empty, "ping": _reply_empty, "whatsmyuri": _get_my_uri,
    **dict.fromkeys(_TEST_COMMANDS, _run_api_test)
}  # fmt: skip

"""Check the fields ``apiVersion``, ``apiStrict`` and ``apiDeprecationErrors`` of the Stable API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.command import CommandError, error
from gmongo.testing.simulation.call import Call

_VERSION_1_COMMANDS = frozenset(
    {
        "abortTransaction", "aggregate", "authenticate", "bulkWrite", "collMod",
        "commitTransaction", "count", "create", "createIndexes", "delete", "drop", "dropDatabase",
        "dropIndexes", "endSessions", "explain", "find", "findAndModify", "getMore", "hello",
        "insert", "killCursors", "listCollections", "listDatabases", "listIndexes", "ping",
        "refreshSessions", "saslContinue", "saslStart", "testDeprecation", "testVersions1And2",
        "update"
    }
)  # fmt: skip
_VERSION_2_COMMANDS = frozenset({"testDeprecationInVersion2", "testVersion2", "testVersions1And2"})
_DEPRECATED_COMMANDS = {"1": frozenset({"testDeprecation"}), "2": frozenset({"testDeprecationInVersion2"})}
_COMMANDS = {"1": _VERSION_1_COMMANDS, "2": _VERSION_2_COMMANDS}
_FIRST_VERSIONS = {"count": (5, 0, 9), "bulkWrite": (8, 0, 0)}
# The fields that do not belong to API version 1, by command.
_EXCLUDED_FIELDS: dict[str, frozenset[str]] = {
    "find": frozenset(
        {"awaitData", "max", "min", "noCursorTimeout", "oplogReplay", "returnKey", "showRecordId", "tailable"}
    ),
    "aggregate": frozenset({"exchange", "fromMongos", "isMapReduceCommand", "needsMerge", "runtimeConstants"}),
    "create": frozenset({"autoIndexId", "capped", "idIndex", "indexOptionDefaults", "max", "size", "storageEngine"}),
    "listIndexes": frozenset({"includeBuildUUIDs", "includeIndexBuildInfo"}),
    "update": frozenset(),
}
_EXCLUDED_INDEX_FIELDS = frozenset({"background", "bucketSize", "sparse", "storageEngine"})
_EXCLUDED_INDEX_TYPES = frozenset({"text", "geoHaystack"})
_EXCLUDED_STAGES = frozenset(
    {
        "$collStats", "$currentOp", "$indexStats", "$listLocalSessions", "$listSampledQueries",
        "$listSearchIndexes", "$listSessions", "$planCacheStats", "$search", "$searchMeta",
        "$shardedDataDistribution"
    }
)  # fmt: skip


def check_stable_api(call: Call) -> None:
    """Check the fields of the Stable API in a command."""
    body = call.body
    version = body.get("apiVersion")
    if version is None:
        _check_missing_version(call)
        return
    accepted_versions = ("1", "2") if call.member.parameters["acceptApiVersion2"] else ("1",)
    if version not in accepted_versions:
        raise error(322, f'API version must be {" or ".join(accepted_versions)}, not "{version}"')
    if body.get("apiStrict"):
        _check_strict(call, version)
    if body.get("apiDeprecationErrors") and call.name in _DEPRECATED_COMMANDS[version]:
        message_start = "Provided apiDeprecationErrors:true, but the command"
        raise error(324, f"{message_start} {call.name} is deprecated in API Version {version}")


def _check_missing_version(call: Call) -> None:
    for name in ("apiStrict", "apiDeprecationErrors"):
        if call.body.get(name) is not None:
            raise error(4886600, f"Provided {name} without passing apiVersion")
    if call.member.parameters["requireApiVersion"]:
        message = "The apiVersion parameter is required, please configure your MongoClient's API version"
        raise error(498870, message)


def _check_strict(call: Call, version: str) -> None:
    is_listed = call.name in _COMMANDS[version] and call.cluster.version >= _FIRST_VERSIONS.get(call.name, (0,))
    if not is_listed:
        raise error(323, f"Provided apiStrict:true, but the command {call.name} is not in API Version {version}")
    for name in sorted(_EXCLUDED_FIELDS.get(call.name, frozenset()) & set(call.body)):
        raise _create_api_error(f"the field {name!r} of {call.name}", version)
    for stage in _find_stages(call.body):
        if stage in _EXCLUDED_STAGES:
            raise _create_api_error(f"stage {stage}", version)
    if call.name == "createIndexes":
        _check_indexes(call.body, version)


def _check_indexes(body: Mapping[str, Any], version: str) -> None:
    for index in body.get("indexes", ()):
        for name in sorted(_EXCLUDED_INDEX_FIELDS & set(index)):
            raise _create_api_error(f"the index option {name!r}", version)
        kinds = (kind for kind in index.get("key", {}).values() if isinstance(kind, str))
        if any(kind in _EXCLUDED_INDEX_TYPES for kind in kinds):
            raise _create_api_error(f"the index {index.get('key')}", version)


def _find_stages(body: Mapping[str, Any]) -> list[str]:
    pipeline = body.get("pipeline")
    if not isinstance(pipeline, list):
        return []
    return [name for stage in pipeline if isinstance(stage, Mapping) for name in stage]


def _create_api_error(construct: str, version: str) -> CommandError:
    return error(323, f"Provided apiStrict:true, but {construct} is not in API Version {version}")

"""Operations of the test runner that assert a condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.spec.unified import driver_internals
from tests.spec.unified.matching import Mismatch
from tests.spec.unified.operations.method import Function

if TYPE_CHECKING:
    from tests.spec.unified.runner import Run


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise Mismatch(message)


def _assert_event_count(run: Run, _target: None, client: str, event: Mapping[str, Any], count: int) -> None:
    recorder = run.entities.client(client).recorder
    actual = run.event_matcher.count(event, recorder.events)
    _expect(actual == count, f"{client} must have {count} events {event}, had {actual}: {recorder.text()}")


def _assert_checked_out_connections(run: Run, _target: None, client: str, connections: int) -> None:
    actual = run.entities.client(client).recorder.checked_out_count
    _expect(
        actual == connections,
        f"{connections} connections of {client} must be checked out, were {actual}",
    )


def _assert_topology_type(run: Run, _target: None, topologyDescription: str, topologyType: str) -> None:
    actual = run.entities.get("topologyDescription", topologyDescription).topology_type_name
    _expect(actual == topologyType, f"the topology must be {topologyType}, was {actual}")


def _assert_session_state(run: Run, _target: None, session: str, state: str) -> None:
    actual = driver_internals.transaction_state(run.entities.session(session))
    _expect(actual == state, f"the transaction of {session} must be {state}, was {actual}")


def _assert_pinned(run: Run, _target: None, session: str) -> None:
    _expect(driver_internals.is_pinned(run.entities.session(session)), f"{session} must be pinned")


def _assert_unpinned(run: Run, _target: None, session: str) -> None:
    _expect(not driver_internals.is_pinned(run.entities.session(session)), f"{session} must not be pinned")


def _assert_dirty(run: Run, _target: None, session: str) -> None:
    _expect(driver_internals.is_dirty(run.entities.session(session)), f"{session} must be dirty")


def _assert_not_dirty(run: Run, _target: None, session: str) -> None:
    _expect(not driver_internals.is_dirty(run.entities.session(session)), f"{session} must not be dirty")


def _last_two_lsids(run: Run, client: str) -> list[Any]:
    events = run.entities.client(client).recorder.events
    commands = [event.command for name, event in events if name == "commandStartedEvent"][-2:]
    _expect(len(commands) == 2, f"{client} must have sent two commands, was {commands}")
    _expect(
        all("lsid" in command for command in commands),
        f"both commands must have an lsid, were {commands}",
    )
    return [command["lsid"] for command in commands]


def _assert_same_lsid(run: Run, _target: None, client: str) -> None:
    first, second = _last_two_lsids(run, client)
    _expect(first == second, f"the last two commands of {client} must have the same lsid")


def _assert_different_lsid(run: Run, _target: None, client: str) -> None:
    first, second = _last_two_lsids(run, client)
    _expect(first != second, f"the last two commands of {client} must have different lsids")


def _collections(run: Run, name: str) -> list[str]:
    return run.deployment.internal_client[name].list_collection_names()


def _assert_collection_exists(run: Run, _target: None, databaseName: str, collectionName: str) -> None:
    actual = _collections(run, databaseName)
    _expect(collectionName in actual, f"{databaseName}.{collectionName} must exist, there are {actual}")


def _assert_no_collection(run: Run, _target: None, databaseName: str, collectionName: str) -> None:
    _expect(
        collectionName not in _collections(run, databaseName),
        f"{databaseName}.{collectionName} must not exist",
    )


def _index_names(run: Run, database: str, collection: str) -> list[str]:
    return list(run.deployment.internal_client[database][collection].index_information())


def _assert_index_exists(run: Run, _target: None, databaseName: str, collectionName: str, indexName: str) -> None:
    actual = _index_names(run, databaseName, collectionName)
    _expect(indexName in actual, f"the index {indexName} must exist, there are {actual}")


def _assert_no_index(run: Run, _target: None, databaseName: str, collectionName: str, indexName: str) -> None:
    _expect(
        indexName not in _index_names(run, databaseName, collectionName),
        f"the index {indexName} must not exist",
    )


OPERATIONS: dict[str, Function] = {
    "assertCollectionExists": Function(_assert_collection_exists),
    "assertCollectionNotExists": Function(_assert_no_collection),
    "assertDifferentLsidOnLastTwoCommands": Function(_assert_different_lsid),
    "assertEventCount": Function(_assert_event_count),
    "assertIndexExists": Function(_assert_index_exists),
    "assertIndexNotExists": Function(_assert_no_index),
    "assertNumberConnectionsCheckedOut": Function(_assert_checked_out_connections),
    "assertSameLsidOnLastTwoCommands": Function(_assert_same_lsid),
    "assertSessionDirty": Function(_assert_dirty),
    "assertSessionNotDirty": Function(_assert_not_dirty),
    "assertSessionPinned": Function(_assert_pinned),
    "assertSessionTransactionState": Function(_assert_session_state),
    "assertSessionUnpinned": Function(_assert_unpinned),
    "assertTopologyType": Function(_assert_topology_type),
}

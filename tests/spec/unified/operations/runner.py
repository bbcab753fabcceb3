"""Operations of the entity ``testRunner``: fail points, entities, threads, waits and assertions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gevent

from gmongo import ReadPreference
from tests.spec.unified import entities as entity_factory
from tests.spec.unified.driver_internals import pinned_address
from tests.spec.unified.entities import Entity
from tests.spec.unified.matching import Mismatch
from tests.spec.unified.operations import assertions
from tests.spec.unified.operations.method import Function
from tests.spec.unified.schema import FormatError

if TYPE_CHECKING:
    from tests.spec.unified.runner import Run

_TEN_SECONDS_MS = 10_000


def _set_fail_point(run: Run, _target: None, client: str, failPoint: Mapping[str, Any]) -> None:
    run.fail_points.add(failPoint["configureFailPoint"])
    target = run.entities.client(client)
    with run.pausing_logs_except(client):
        target.client.admin.command(failPoint, read_preference=ReadPreference.PRIMARY)


def _set_targeted_fail_point(run: Run, _target: None, session: str, failPoint: Mapping[str, Any]) -> None:
    address = pinned_address(run.entities.session(session))
    if address is None:
        raise FormatError(f"{session} must be pinned to a mongos")
    run.fail_points.add(failPoint["configureFailPoint"])
    run.deployment.configure_fail_point(address, failPoint)


def _create_entities(run: Run, _target: None, entities: list[Mapping[str, Any]]) -> None:
    entity_factory.create(run, entities)


def _run_on_thread(run: Run, _target: None, thread: str, operation: Mapping[str, Any]) -> None:
    run.entities.get("thread", thread).submit(lambda: run.execute(operation))


def _wait_for_thread(run: Run, _target: None, thread: str) -> None:
    run.entities.get("thread", thread).join()


def _wait(run: Run, _target: None, ms: int) -> None:
    gevent.sleep(ms / 1000)


def _wait_for_event(run: Run, _target: None, client: str, event: Mapping[str, Any], count: int) -> None:
    recorder = run.entities.client(client).recorder
    if not recorder.wait_until(lambda: run.event_matcher.count(event, recorder.events) >= count):
        actual = run.event_matcher.count(event, recorder.events)
        raise Mismatch(f"{client} must have {count} events {event}, had {actual}: {recorder.text()}")


def _record_topology_description(run: Run, _target: None, client: str, id: str) -> None:
    description = run.entities.client(client).client.topology_description
    run.entities.add(id, Entity("topologyDescription", description, client))


def _wait_for_primary_change(
    run: Run, _target: None, client: str, priorTopologyDescription: str, timeoutMS: int = _TEN_SECONDS_MS
) -> None:
    before = _primaries(run.entities.get("topologyDescription", priorTopologyDescription))
    entity = run.entities.client(client)

    def has_new_primary() -> bool:
        now = _primaries(entity.client.topology_description)
        return bool(now) and now != before

    if not entity.recorder.wait_until(has_new_primary, timeoutMS / 1000):
        raise Mismatch(f"{client} still knows {before} as the primary after {timeoutMS} ms")


def _primaries(description: Any) -> set[Any]:
    servers = description.server_descriptions().items()
    return {address for address, server in servers if server.server_type_name == "RSPrimary"}


OPERATIONS: dict[str, Function] = {
    "createEntities": Function(_create_entities),
    "failPoint": Function(_set_fail_point),
    "recordTopologyDescription": Function(_record_topology_description),
    "runOnThread": Function(_run_on_thread),
    "targetedFailPoint": Function(_set_targeted_fail_point),
    "wait": Function(_wait),
    "waitForEvent": Function(_wait_for_event),
    "waitForPrimaryChange": Function(_wait_for_primary_change),
    "waitForThread": Function(_wait_for_thread),
    **assertions.OPERATIONS,
}

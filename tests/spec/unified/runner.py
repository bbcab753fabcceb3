"""Execution of one case of the unified test format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import gevent

from tests.spec.unified import entities as entity_factory
from tests.spec.unified.deployments import RunningDeployment
from tests.spec.unified.driver_internals import complete_documents_in_logs, quick_heartbeats
from tests.spec.unified.entities import Entities, Entity
from tests.spec.unified.errors import check_error
from tests.spec.unified.events import EventMatcher
from tests.spec.unified.logs import check_logs
from tests.spec.unified.matching import Matcher, Mismatch
from tests.spec.unified.operations import bucket, client, collection, cursor, database, encryption, runner, session
from tests.spec.unified.operations.method import Operation
from tests.spec.unified.outcome import check_outcome, insert_initial_data
from tests.spec.unified.results import Documents
from tests.spec.unified.schema import FormatError
from tests.spec.unified.spans import check_spans

_OPERATIONS: dict[str, Mapping[str, Operation]] = {
    "bucket": bucket.OPERATIONS,
    "client": client.OPERATIONS,
    "clientEncryption": encryption.OPERATIONS,
    "collection": collection.OPERATIONS,
    "cursor": cursor.OPERATIONS,
    "database": database.OPERATIONS,
    "session": session.OPERATIONS,
    "testRunner": runner.OPERATIONS,
}
_TEST_RUNNER = Entity("testRunner", None)
_NO_EXPECTATION = object()

# Option for client entities, and its default value in ms. The interval is short, so that a client
# recovers quickly from fail points.
_HEARTBEAT_OPTION, _QUICK_HEARTBEAT_MS = "heartbeatFrequencyMS", 40

_CASE_TIMEOUT_SECONDS = 30
_EVENT_WAIT_SECONDS = 5  # Seconds for which the runner waits for expected events after the last operation.


class Run:
    """Execution of one case on one deployment."""

    def __init__(
        self,
        deployment: RunningDeployment,
        document: Mapping[str, Any],
        case: Mapping[str, Any],
        client_options: Mapping[str, Any],
    ) -> None:
        self.deployment = deployment
        self.client_options = client_options
        self.entities = Entities()
        self.fail_points: set[str] = set()
        self.cluster_time: Mapping[str, Any] | None = None
        self.expects_logs = "expectLogMessages" in case
        self._document = document
        self._case = case
        self._matcher = Matcher(lambda name: self.entities.get("value", name), self.entities.lsid)
        self.event_matcher = EventMatcher(self._matcher)

    def run(self) -> None:
        """Run the case."""
        with ExitStack() as stack:
            if _HEARTBEAT_OPTION not in str(self._case) + str(self._document.get("createEntities")):
                stack.enter_context(quick_heartbeats())
                self.client_options = {_HEARTBEAT_OPTION: _QUICK_HEARTBEAT_MS, **self.client_options}
            if self.expects_logs:
                stack.enter_context(complete_documents_in_logs())
            stack.callback(self._clean_up)
            too_long = AssertionError(f"the case has not ended within {_CASE_TIMEOUT_SECONDS} s")
            stack.enter_context(gevent.Timeout(_CASE_TIMEOUT_SECONDS, too_long))
            initial_data = self._document.get("initialData", [])
            self.cluster_time = insert_initial_data(self.deployment.internal_client, initial_data)
            self.deployment.synchronize_mongos(self._document)
            entity_factory.create(self, self._document.get("createEntities", []))
            for operation in self._case["operations"]:
                self.execute(operation)
            self._await_events()
            self._stop_listening()
            self._disable_fail_points()
            self._check()

    def _await_events(self) -> None:
        """Wait until each client has recorded as many events as expected, or until a timeout."""
        for expected in self._case.get("expectEvents", []):
            recorder = self.entities.client(expected["client"]).recorder
            kind, count = expected.get("eventType", "command"), len(expected["events"])
            recorder.wait_until(lambda: len(recorder.events_of_kind(kind)) >= count, _EVENT_WAIT_SECONDS)  # noqa: B023

    def _stop_listening(self) -> None:
        for each in self.entities.objects_of_kind("client"):
            each.stop_listening()

    def _disable_fail_points(self) -> None:
        names, self.fail_points = self.fail_points, set()
        self.deployment.disable_fail_points(names)

    def _check(self) -> None:
        for each in self.entities.objects_of_kind("thread"):
            each.check()
        for expected in self._case.get("expectEvents", []):
            self.event_matcher.check_all(expected, self.entities.client(expected["client"]).recorder)
        for expected in self._case.get("expectLogMessages", []):
            log_client = self.entities.client(expected["client"])
            assert log_client.logs is not None, f"{log_client.name} does not observe log messages"
            check_logs(expected, log_client.logs.records_of_topology(log_client.recorder.topology_id), self._matcher)
        for expected in self._case.get("expectTracingMessages", []):
            span_client = self.entities.client(expected["client"])
            assert span_client.spans is not None, f"{span_client.name} does not observe tracing messages"
            check_spans(expected, span_client.spans.trees(), self._matcher)
        check_outcome(self.deployment.internal_client, self._case.get("outcome", []))

    def _clean_up(self) -> None:
        self._stop_listening()
        self._disable_fail_points()
        for thread in self.entities.objects_of_kind("thread"):
            thread.kill()
        for each in self.entities.objects_of_kind("cursor"):
            each.close()
        for each in self.entities.objects_of_kind("clientEncryption"):
            each.close()
        for each in self.entities.objects_of_kind("session"):
            each.end_session()
        for each in self.entities.objects_of_kind("client"):
            each.close()
        if "Transaction" in str(self._case["operations"]):
            self.deployment.kill_sessions()

    @contextmanager
    def pausing_logs_except(self, name: str) -> Iterator[None]:
        """While the block runs, only the client entity `name` collects log messages of the current
        greenlet.
        """
        others = [
            each for each in self.entities.objects_of_kind("client") if each.name != name and each.logs is not None
        ]
        with ExitStack() as stack:
            for each in others:
                stack.enter_context(each.logs.pausing())
            yield

    def execute(self, operation: Mapping[str, Any], propagate: bool = False) -> None:
        """Run an operation, and compare its result or error with the expectation."""
        target = _TEST_RUNNER if operation["object"] == "testRunner" else self.entities.find(operation["object"])
        known = _OPERATIONS.get(target.kind, {})
        if operation["name"] not in known:
            raise FormatError(f"a {target.kind} has no operation {operation['name']!r}")
        value = target.value.client if target.kind == "client" else target.value
        pausing = nullcontext() if target.client_name is None else self.pausing_logs_except(target.client_name)
        arguments = operation.get("arguments", {})
        with pausing:
            result, error = _attempt(lambda: known[operation["name"]].run(self, value, arguments))
        self._check_end(operation, target, result, error)
        if error is not None and propagate:
            raise error

    def _check_end(self, operation: Mapping[str, Any], target: Entity, result: Any, error: Exception | None) -> None:
        if operation.get("ignoreResultAndError", False):
            return
        expected = operation.get("expectError")
        if expected is not None:
            if error is None:
                raise Mismatch(f"{operation['name']} must fail with {expected}, but returned {result!r}")
            check_error(expected, error, self._matcher)
        elif error is not None:
            raise AssertionError(f"{operation['name']} failed: {type(error).__name__}: {error}") from error
        else:
            self._check_result(operation, target, result)

    def _check_result(self, operation: Mapping[str, Any], target: Entity, result: Any) -> None:
        expected_result = operation.get("expectResult", _NO_EXPECTATION)
        if expected_result is not _NO_EXPECTATION:
            check = self._matcher.check_documents if isinstance(result, Documents) else self._matcher.check
            check(expected_result, result, path=f"the result of {operation['name']}")
        if "saveResultAsEntity" in operation:
            self.entities.add_result(operation["saveResultAsEntity"], result, target.client_name)


def _attempt(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Run an operation. Return the pair (result, None), or the pair (None, error of the driver).

    Errors of the runner propagate.
    """
    try:
        return call(), None
    except (AssertionError, FormatError):
        raise
    except Exception as error:
        return None, error

"""Check the invariants of a client whose server sends wrong replies or fails."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any

import gevent
from bson.errors import BSONError

from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.monitoring import CommandListener

DOCUMENTED_ERRORS = (PyMongoError, BSONError)
TIME_LIMIT = 10.0  # Time limit of an operation in seconds.


class Violation(AssertionError):
    """Raised if the client has violated an invariant of a campaign."""


class CommandEventChecker(CommandListener):
    """Listener that checks that each CommandStartedEvent has exactly one end event."""

    def __init__(self) -> None:
        self.open_commands: dict[int, str] = {}
        self.command_count = 0
        self.faults: list[str] = []

    def started(self, event: Any) -> None:
        self.command_count += 1
        if event.request_id in self.open_commands:
            self.faults.append(f"{event.command_name} was started twice")
        self.open_commands[event.request_id] = event.command_name

    def succeeded(self, event: Any) -> None:
        if self.open_commands.pop(event.request_id, None) is None:
            self.faults.append(f"{event.command_name} ended without a start")

    failed = succeeded


def attempt(operation: Any) -> BaseException | None:
    """Run an operation. Return the documented error that the operation raises, or None if the
    operation succeeds.

    :raises Violation: the operation raises an error outside ``DOCUMENTED_ERRORS``, or does not end in
        time.
    """
    limit = gevent.Timeout(TIME_LIMIT)
    try:
        with limit:
            operation()
    except DOCUMENTED_ERRORS as error:
        return error
    except gevent.Timeout as error:
        raise Violation(f"the operation does not end within {TIME_LIMIT} s") from error
    except Exception as error:
        raise Violation(f"the operation raises {type(error).__name__}: {str(error)[:300]}") from error
    return None


def check_nothing_in_use(client: MongoClient[Any], checker: CommandEventChecker) -> None:
    """Check that no connection and no session is in use, and that each command has an end event.

    :raises Violation: after a wait, a resource is still in use, or an end event is missing.
    """
    for _ in range(10_000):
        busy = [s for s in client.pool_stats() if s["in_use"] or s["pending"] or s["waiting"] or s["draining"]]
        if not busy and not client._executor.sessions.in_use and not checker.open_commands:
            break
        gevent.sleep(0.001)
    else:
        raise Violation(
            f"in use: {busy}, {client._executor.sessions.in_use} sessions; without end event: {checker.open_commands}"
        )
    if checker.faults:
        raise Violation(str(checker.faults))
    for pool in client._topology.pools():
        machine, stats = pool.machine, pool.stats()
        sets = machine.pending, machine.available, machine.in_use, machine.draining
        if [len(each) for each in sets] != [stats[name] for name in ("pending", "available", "in_use", "draining")]:
            raise Violation(f"the pool's sets differ from its counts: {stats}")


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Check at the end of the block that the code in the block printed nothing to standard error.

    :raises Violation: the code in the block printed a text.
    """
    original, sys.stderr = sys.stderr, io.StringIO()
    try:
        yield
    finally:
        printed_text, sys.stderr = sys.stderr.getvalue(), original
    if printed_text:
        raise Violation(f"the client has printed on stderr: {printed_text[-2000:]}")


class CampaignResults:
    """The number of cases of a campaign, the number of cases with each outcome, and the violations.

    :param name: the name of the campaign.
    :param seed: the seed of the campaign.
    """

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.seed = seed
        self.case_count = 0
        self.outcomes: dict[str, int] = {}
        self.violations: list[tuple[int, str]] = []

    def count_outcome(self, error: BaseException | None) -> None:
        """Count the outcome of a case: the class of the documented error, or ``none``."""
        kind = "none" if error is None else type(error).__name__
        self.outcomes[kind] = self.outcomes.get(kind, 0) + 1

    def report(self) -> str:
        """Return a text with all counts and the first violations."""
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(self.outcomes.items(), key=lambda x: -x[1]))
        lines = [f"{self.name}: {self.case_count} cases, seed {self.seed}, {len(self.violations)} violations; {counts}"]
        lines += [f"  case {case}: {violation}" for case, violation in self.violations[:20]]
        return "\n".join(lines)

"""``$where`` with a sleep, the only JavaScript of the simulation, for tests of slow queries and writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gmongo.testing.command import interrupted
from gmongo.testing.simulation.call import Call, CloseConnection
from gmongo.testing.simulation.error_codes import error
from gmongo.testing.simulation.operations import Operation
from gmongo.testing.simulation.waiting import wait_for

_SLEEPS = (
    re.compile(r"sleep\((\d+)\)\s*\|\|\s*true;?"),
    re.compile(r"function\s*\(\)\s*\{\s*sleep\((\d+)\);\s*return true;?\s*\}"),
)
# The filters of commands: the field, and the name of the filter in its documents.
_STATEMENTS = {"update": "updates", "delete": "deletes"}


def execute_sleep(call: Call, operation: Operation) -> None:
    """Sleep once for a filter that only sleeps, and remove the sleep from the filter.

    :raises CommandError: the operation timed out, or was killed.
    :raises CloseConnection: the client has left.
    """
    wanted = 0.0
    for holder, field in list(_filters(call)):
        found = _sleep_of(holder[field])
        if found is not None:
            wanted += found
            # Only the log also refers to this document.
            holder[field] = {name: value for name, value in holder[field].items() if name != "$where"}
    if wanted:
        _sleep(call, operation, wanted)


def _filters(call: Call) -> Iterator[tuple[dict[str, Any], str]]:
    if call.name == "find" and isinstance(call.body.get("filter"), dict):
        yield call.body, "filter"
    statements = call.body.get(_STATEMENTS.get(call.name, ""))
    for statement in statements if isinstance(statements, list) else ():
        if isinstance(statement, dict) and isinstance(statement.get("q"), dict):
            yield statement, "q"


def _sleep_of(condition: dict[str, Any]) -> float | None:
    """Return the seconds of a filter that only sleeps, or None. The store refuses other code."""
    script = str(condition.get("$where", "")).strip()
    found = next(filter(None, (pattern.fullmatch(script) for pattern in _SLEEPS)), None)
    return None if found is None else int(found[1]) / 1000


def _sleep(call: Call, operation: Operation, wanted: float) -> None:
    allowed = (call.body.get("maxTimeMS") or float("inf")) / 1000
    if wait_for(operation.over, min(wanted, allowed)):
        if operation.is_killed():
            raise interrupted()
        raise CloseConnection
    if allowed < wanted:
        raise error(50, "operation exceeded time limit")

"""Execute ``$where`` with a JavaScript ``sleep``, to test slow queries. Other JavaScript fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gmongo.testing.command import create_kill_error, error
from gmongo.testing.simulation.call import Call, CloseConnection
from gmongo.testing.simulation.commands.operations import Operation
from gmongo.testing.simulation.waiting import wait_for

_SLEEP_PATTERNS = (
    re.compile(r"sleep\((\d+)\)\s*\|\|\s*true;?"),
    re.compile(r"function\s*\(\)\s*\{\s*sleep\((\d+)\);\s*return true;?\s*\}"),
)
# The field with the statements, by command. The filter of a statement is the field `q`.
_STATEMENT_FIELDS = {"update": "updates", "delete": "deletes"}


def execute_sleep(call: Call, operation: Operation) -> None:
    """Remove each ``$where`` that contains only a sleep, and sleep for the sum of the times."""
    total_seconds = 0.0
    for document, field in list(_find_filters(call)):
        seconds = _parse_sleep(document[field])
        if seconds is not None:
            total_seconds += seconds
            # The removal changes the document in the command log, but no stored document.
            document[field] = {name: value for name, value in document[field].items() if name != "$where"}
    if not total_seconds:
        return
    max_seconds = (call.body.get("maxTimeMS") or float("inf")) / 1000
    if wait_for(operation.interrupted, min(total_seconds, max_seconds)):
        if operation.is_killed():
            raise create_kill_error()
        raise CloseConnection
    if max_seconds < total_seconds:
        raise error(50, "operation exceeded time limit")


def _find_filters(call: Call) -> Iterator[tuple[dict[str, Any], str]]:
    """For each filter, yield two values: the containing document and the name of the filter field."""
    if call.name == "find" and isinstance(call.body.get("filter"), dict):
        yield call.body, "filter"
    statements = call.body.get(_STATEMENT_FIELDS.get(call.name, ""))
    for statement in statements if isinstance(statements, list) else ():
        if isinstance(statement, dict) and isinstance(statement.get("q"), dict):
            yield statement, "q"


def _parse_sleep(query: dict[str, Any]) -> float | None:
    """Return the duration of the sleep in seconds. Return None if the filter has no ``$where`` with only a sleep."""
    script = str(query.get("$where", "")).strip()
    match = next(filter(None, (pattern.fullmatch(script) for pattern in _SLEEP_PATTERNS)), None)
    return None if match is None else int(match[1]) / 1000

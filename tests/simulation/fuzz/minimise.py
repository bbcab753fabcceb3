"""Shrink a case while the server and the simulation still answer the last command of the case
differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from tests.simulation.answers.notation import is_wrapper, to_line

_MAX_ATTEMPTS = 60
_MAX_SECONDS = 20.0


def minimise(fields: dict[str, Any], differs: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return a smaller case for which `differs` is true, after at most `_MAX_ATTEMPTS` attempts or
    `_MAX_SECONDS` seconds.

    :param fields: the fields of a case whose last command has different answers.
    :param differs: function that returns True if the answers to the last command of a case differ.
    """
    attempt_count = 0
    deadline = monotonic() + _MAX_SECONDS
    progress = True
    while progress:
        progress = False
        for candidate in sorted(_smaller_cases(fields), key=lambda case: len(to_line(case))):
            attempt_count += 1
            if attempt_count > _MAX_ATTEMPTS or monotonic() > deadline:
                return fields
            if differs(candidate):
                fields, progress = candidate, True
                break
    return fields


def _smaller_cases(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    run = fields["run"]
    for index in range(len(run) - 1):
        # The removal of a command would change the command indexes in `$answer`.
        if "$answer" not in to_line(run[index + 1 :]):
            yield {**fields, "run": run[:index] + run[index + 1 :]}
    for name in ("documents", "others"):
        for documents in _smaller_values(fields.get(name, [])):
            if isinstance(documents, list) and all(isinstance(part, dict) and "_id" in part for part in documents):
                yield {**fields, name: documents} if documents else {k: v for k, v in fields.items() if k != name}
    for index in reversed(range(len(run))):
        name = next(iter(run[index]))
        for command in _smaller_values(run[index]):
            if isinstance(command, dict) and next(iter(command), None) == name and command[name] == run[index][name]:
                yield {**fields, "run": [*run[:index], command, *run[index + 1 :]]}


def _smaller_values(value: Any) -> Iterator[Any]:
    """Yield copies of a value. Each copy lacks one part, or contains a smaller value in place of one
    part.
    """
    if is_wrapper(value):
        return
    if isinstance(value, list):
        for index, part in enumerate(value):
            yield value[:index] + value[index + 1 :]
            for smaller in _smaller_parts(part):
                yield [*value[:index], smaller, *value[index + 1 :]]
    elif isinstance(value, dict):
        for name, part in value.items():
            yield {key: other for key, other in value.items() if key != name}
            for smaller in _smaller_parts(part):
                yield {key: smaller if key == name else other for key, other in value.items()}


def _smaller_parts(part: Any) -> Iterator[Any]:
    if isinstance(part, (dict, list)) and not is_wrapper(part):
        yield from part.values() if isinstance(part, dict) else part
        yield 1
        yield from _smaller_values(part)

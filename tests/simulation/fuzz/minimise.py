"""Remove the parts of a case that are not needed for a difference between the server and the simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.simulation.answers.notation import is_wrapper, line

_ATTEMPTS = 60


def minimised(fields: dict[str, Any], differs: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Remove parts of a case while its last answers differ. Stop after a limited number of attempts.

    :param fields: the fields of a case. The answers to its last command differ.
    :param differs: function that returns True if the answers to the last command of a case differ.
    """
    attempts = 0
    progress = True
    while progress:
        progress = False
        for candidate in sorted(_candidates(fields), key=lambda found: len(line(found))):
            attempts += 1
            if attempts > _ATTEMPTS:
                return fields
            if differs(candidate):
                fields, progress = candidate, True
                break
    return fields


def _candidates(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    run = fields["run"]
    for index in range(len(run) - 1):
        # `$answer` contains the index of an earlier command, which a removal would change.
        if "$answer" not in line(run[index + 1 :]):
            yield {**fields, "run": run[:index] + run[index + 1 :]}
    for name in ("documents", "others"):
        for documents in _smaller(fields.get(name, [])):
            if isinstance(documents, list) and all(isinstance(part, dict) and "_id" in part for part in documents):
                yield {**fields, name: documents} if documents else {k: v for k, v in fields.items() if k != name}
    for index in reversed(range(len(run))):
        verb = next(iter(run[index]))
        for command in _smaller(run[index]):
            if isinstance(command, dict) and next(iter(command), None) == verb and command[verb] == run[index][verb]:
                yield {**fields, "run": [*run[:index], command, *run[index + 1 :]]}


def _smaller(value: Any) -> Iterator[Any]:
    """Yield copies of a value that lack one part, or that have a smaller value in place of one part."""
    if is_wrapper(value):
        return
    if isinstance(value, list):
        for index, part in enumerate(value):
            yield value[:index] + value[index + 1 :]
            for smaller in _smaller_part(part):
                yield [*value[:index], smaller, *value[index + 1 :]]
    elif isinstance(value, dict):
        for name, part in value.items():
            yield {key: other for key, other in value.items() if key != name}
            for smaller in _smaller_part(part):
                yield {key: smaller if key == name else other for key, other in value.items()}


def _smaller_part(part: Any) -> Iterator[Any]:
    if isinstance(part, (dict, list)) and not is_wrapper(part):
        yield from part.values() if isinstance(part, dict) else part
        yield 1
        yield from _smaller(part)

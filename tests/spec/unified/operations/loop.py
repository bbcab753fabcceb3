"""The operation ``loop`` of the unified test format."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.spec.unified.entities import Entity
from tests.spec.unified.schema import FormatError

if TYPE_CHECKING:
    from tests.spec.unified.runner import Run


def loop(
    run: Run,
    _target: None,
    operations: list[Mapping[str, Any]],
    storeErrorsAsEntity: str | None = None,
    storeFailuresAsEntity: str | None = None,
    storeSuccessesAsEntity: str | None = None,
    storeIterationsAsEntity: str | None = None,
) -> None:
    """Repeat the operations until :attr:`Run.loops_must_end` returns True."""
    for name in (storeSuccessesAsEntity, storeIterationsAsEntity):
        if name is not None and name in run.entities:
            raise FormatError(f"there is already an entity {name!r}")
    errors, failures = _list_of_entity(run, storeErrorsAsEntity), _list_of_entity(run, storeFailuresAsEntity)
    errors, failures = errors if errors is not None else failures, failures if failures is not None else errors
    successes = iterations = 0
    while not run.loops_must_end():
        iterations += 1
        try:
            for operation in operations:
                run.execute(operation)
                successes += 1
        except Exception as error:
            stored = failures if isinstance(error, AssertionError) else errors
            if stored is None:
                raise
            stored.append({"error": str(error), "time": time.time()})
    for name, number in ((storeSuccessesAsEntity, successes), (storeIterationsAsEntity, iterations)):
        if name is not None:
            run.entities.add(name, Entity("value", number))


def _list_of_entity(run: Run, name: str | None) -> list[Any] | None:
    """Return the list in the ``value`` entity `name`.

    If no entity has this name, create an entity with an empty list.
    """
    if name is None:
        return None
    if name not in run.entities:
        run.entities.add(name, Entity("value", []))
    value = run.entities.get("value", name)
    if not isinstance(value, list):
        raise FormatError(f"{name!r} must be an array, was {value!r}")
    return value

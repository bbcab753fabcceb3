"""Breadth-first exploration of all states that a system can reach with a limited number of steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

Step = tuple[Any, ...]


class ExploredSystem(Protocol):
    """Deterministic system whose states :func:`explore` visits."""

    def steps(self) -> Iterator[Step]:
        """Yield each step that is possible in the current state."""

    def execute_step(self, step: Step) -> None:
        """Execute a step that :meth:`steps` has yielded."""

    def find_violations(self) -> Iterator[str]:
        """Yield a description of each invariant that the current state violates."""

    def state_view(self) -> Any:
        """Return a hashable view of the current state.

        If two states have equal views, equal steps lead to states with equal views.
        """

    def run_to_end(self) -> Iterator[str]:
        """Complete all started operations, and yield a description of each violated invariant.

        After `run_to_end`, the system executes no more steps.
        """


class Exploration(NamedTuple):
    """Result of :func:`explore`."""

    state_count: int
    step_count: int
    violations: dict[str, tuple[Step, ...]]

    def __str__(self) -> str:
        paths = "".join(
            f"\n{fault}: " + ", ".join(" ".join(map(str, step)) for step in path)
            for fault, path in self.violations.items()
        )
        return f"{self.state_count} states, {self.step_count} steps{paths}"


def explore(create_system: Callable[[], ExploredSystem], depth: int, until_violation: str | None = None) -> Exploration:
    """Visit each state that at most `depth` steps can reach without an earlier violation.

    Stop after the violation `until_violation`.
    """
    seen: set[Any] = set()
    violations: dict[str, tuple[Step, ...]] = {}
    paths: deque[tuple[Step, ...]] = deque([()])
    step_count = 0
    while paths and until_violation not in violations:
        path = paths.popleft()
        for step in _steps_after(create_system, path) if len(path) < depth else ():
            system = _system_after(create_system, (*path, step))
            step_count += 1
            step_violations, view = list(system.find_violations()), system.state_view()
            is_new = not step_violations and view not in seen
            if is_new:
                seen.add(view)
                paths.append((*path, step))
            # If the view is not new, an earlier iteration has checked `run_to_end` for an equal view.
            step_violations += [fault for fault in system.run_to_end() if is_new]
            for fault in step_violations:
                violations.setdefault(fault, (*path, step))
    return Exploration(len(seen), step_count, violations)


def _steps_after(create_system: Callable[[], ExploredSystem], path: tuple[Step, ...]) -> list[Step]:
    system = _system_after(create_system, path)
    steps = list(system.steps())
    list(system.run_to_end())
    return steps


def _system_after(create_system: Callable[[], ExploredSystem], path: tuple[Step, ...]) -> ExploredSystem:
    system = create_system()
    for step in path:
        system.execute_step(step)
    return system

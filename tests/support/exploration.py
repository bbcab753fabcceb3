"""Breadth-first exploration of all orders of steps up to a depth."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

Step = tuple[Any, ...]


class ExploredSystem(Protocol):
    """Deterministic system under exploration."""

    def steps(self) -> Iterator[Step]:
        """Yield the possible next steps."""

    def execute_step(self, step: Step) -> None:
        """Execute a step."""

    def find_violations(self) -> Iterator[str]:
        """Yield the violated invariants."""

    def state_view(self) -> Any:
        """Return a hashable view of the state. Equal views have equal successors."""

    def run_to_end(self) -> Iterator[str]:
        """Complete all running work, and yield the violated invariants. The world allows no further step."""


class Exploration(NamedTuple):
    """Result of an exploration, with the shortest path to each fault."""

    states: int
    steps: int
    violations: dict[str, tuple[Step, ...]]

    def __str__(self) -> str:
        paths = "".join(
            f"\n{fault}: " + ", ".join(" ".join(map(str, step)) for step in path)
            for fault, path in self.violations.items()
        )
        return f"{self.states} states, {self.steps} steps{paths}"


def explore(begin: Callable[[], ExploredSystem], depth: int, until: str | None = None) -> Exploration:
    """Execute every order of at most `depth` steps.

    :param until: Fault that ends the exploration.
    """
    seen: set[Any] = set()
    violations: dict[str, tuple[Step, ...]] = {}
    paths: deque[tuple[Step, ...]] = deque([()])
    taken = 0
    while paths and until not in violations:
        path = paths.popleft()
        for step in _steps_after(begin, path) if len(path) < depth else ():
            world = _after(begin, (*path, step))
            taken += 1
            found, view = list(world.find_violations()), world.state_view()
            is_new = not found and view not in seen
            if is_new:
                seen.add(view)
                paths.append((*path, step))
            # A known state has a known end.
            found += [fault for fault in world.run_to_end() if is_new]
            for fault in found:
                violations.setdefault(fault, (*path, step))
    return Exploration(len(seen), taken, violations)


def _steps_after(begin: Callable[[], ExploredSystem], path: tuple[Step, ...]) -> list[Step]:
    world = _after(begin, path)
    steps = list(world.steps())
    list(world.run_to_end())
    return steps


def _after(begin: Callable[[], ExploredSystem], path: tuple[Step, ...]) -> ExploredSystem:
    world = begin()
    for step in path:
        world.execute_step(step)
    return world

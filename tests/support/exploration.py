"""Taking every order of steps once, to a bounded depth."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

Step = tuple[Any, ...]


class World(Protocol):
    """What is explored, at one moment. The same steps from its beginning lead to the same state."""

    def steps(self) -> Iterator[Step]:
        """The steps that may come next."""

    def take(self, step: Step) -> None:
        """Take one."""

    def faults(self) -> Iterator[str]:
        """What must never be so."""

    def look(self) -> Any:
        """What the state looks like: two that look the same have the same future."""

    def end(self) -> Iterator[str]:
        """Let all that can go on do so; what is wrong then. No step can be taken afterwards."""


class Exploration(NamedTuple):
    """What was seen: how many states and steps, and the shortest ways to each fault."""

    states: int
    steps: int
    faults: dict[str, tuple[Step, ...]]

    def __str__(self) -> str:
        ways = "".join(
            f"\n{fault}: " + ", ".join(" ".join(map(str, step)) for step in way) for fault, way in self.faults.items()
        )
        return f"{self.states} states, {self.steps} steps{ways}"


def explore(begin: Callable[[], World], depth: int, until: str | None = None) -> Exploration:
    """Take every order of at most `depth` steps from the beginning.

    :param until: the fault that is looked for: its first sight is the end.
    """
    seen: set[Any] = set()
    faults: dict[str, tuple[Step, ...]] = {}
    ways: deque[tuple[Step, ...]] = deque([()])
    taken = 0
    while ways and until not in faults:
        way = ways.popleft()
        for step in _steps_after(begin, way) if len(way) < depth else ():
            world = _after(begin, (*way, step))
            taken += 1
            found, look = list(world.faults()), world.look()
            is_new = not found and look not in seen
            if is_new:
                seen.add(look)
                ways.append((*way, step))
            # Only what is new comes to rest in a way that was not looked at.
            found += [fault for fault in world.end() if is_new]
            for fault in found:
                faults.setdefault(fault, (*way, step))
    return Exploration(len(seen), taken, faults)


def _steps_after(begin: Callable[[], World], way: tuple[Step, ...]) -> list[Step]:
    world = _after(begin, way)
    steps = list(world.steps())
    list(world.end())
    return steps


def _after(begin: Callable[[], World], way: tuple[Step, ...]) -> World:
    world = begin()
    for step in way:
        world.take(step)
    return world

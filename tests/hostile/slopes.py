"""What grows in a long run: figures after each step, and how they rise once the run is warm."""

from __future__ import annotations

import gc
import os
import resource
from math import sqrt
from operator import mul
from statistics import fmean, linear_regression

from gevent import get_hub

from tests.support.greenlets import living

_LEAST_STEPS = 12  # fewer say nothing of a slope
_WARM_UP = 1 / 3  # of the steps
# How much each figure may rise from the end of the warm-up to the end of the run, by the line that fits it best.
_TOLERANCE = {"memory": 0.03, "descriptors": 1.0, "greenlets": 1.0, "watchers": 1.0, "objects": 2000.0}
_RELATIVE = ("memory",)
_ERRORS = 3  # standard errors that a rise has at least


def figures() -> dict[str, float]:
    """How much there is now of what a process must not gather: bytes, descriptors, greenlets, watchers, objects."""
    with open("/proc/self/statm") as statistics:
        memory = int(statistics.read().split()[1]) * resource.getpagesize()
    return {
        "memory": memory,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "greenlets": len(living()),
        "watchers": get_hub().loop.activecnt,
        "objects": len(gc.get_objects()),
    }


def _alike(rests: list[float]) -> float:
    """How much each says of the next one, from 0 to almost 1: their autocorrelation."""
    power = sum(rest**2 for rest in rests)
    return min(max(0.0, sum(map(mul, rests, rests[1:])) / power), 0.95) if power else 0.0


class Slopes:
    """The figures of all steps."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []

    def note(self, found: dict[str, float]) -> None:
        """Note the figures after a step."""
        self.steps.append(found)

    def rises(self) -> dict[str, tuple[float, float]]:
        """By how much each figure has risen since the warm-up, memory in relation to what it is then; and the standard
        error of that. Figures swing: one that is above its line is followed by another such one more often than by
        chance, so that the line is less certain than if each step said something new.
        """
        warm = self.steps[int(len(self.steps) * _WARM_UP) :]
        steps = range(len(warm))
        found = {}
        for name in _TOLERANCE:
            values = [each[name] for each in warm]
            unit = (len(warm) - 1) / (values[0] if name in _RELATIVE else 1)
            slope, start = linear_regression(steps, values)
            rests = [value - start - slope * step for step, value in zip(steps, values, strict=True)]
            spread = sum((step - fmean(steps)) ** 2 for step in steps)
            error = sqrt(sum(rest**2 for rest in rests) / (len(warm) - 2) / spread)
            alike = _alike(rests)
            found[name] = slope * unit, error * sqrt((1 + alike) / (1 - alike)) * unit
        return found

    def faults(self) -> list[str]:
        """What has risen too much, and not by chance."""
        if len(self.steps) < _LEAST_STEPS:
            return []
        return [
            f"{name} rise by {rise:.3g}"
            for name, (rise, error) in self.rises().items()
            if rise > max(_TOLERANCE[name], _ERRORS * error)
        ]

    def line(self) -> str:
        """The rises, for people."""
        if len(self.steps) < _LEAST_STEPS:
            return f"no slopes of {len(self.steps)} steps"
        formats = {name: "{:+.2%}" if name in _RELATIVE else "{:+.2f}" for name in _TOLERANCE}
        shown = (f"{name} {formats[name].format(rise)}" for name, (rise, _error) in self.rises().items())
        return "rises after the warm-up: " + ", ".join(shown)

"""Detect growth of resources in a long run, with regression lines of measurements."""

from __future__ import annotations

import gc
import os
import resource
from math import sqrt
from operator import mul
from statistics import fmean, linear_regression

from gevent import get_hub

from tests.support.greenlets import living_greenlets

_MIN_STEPS = 12  # Minimum number of steps for a computation of the growth.
_WARM_UP_SHARE = 1 / 3  # Share of the steps, at the beginning of a run, that the regression line omits.
# Permitted rise of each resource on its regression line, from the end of the warm-up to the end of
# the run.
_TOLERANCES = {"memory": 0.03, "descriptors": 1.0, "greenlets": 1.0, "watchers": 1.0, "objects": 2000.0}
_RELATIVE_RESOURCES = ("memory",)
_SIGNIFICANCE = 3  # A rise above this number of standard errors is significant.


def measure_resources() -> dict[str, float]:
    """Return the memory of the process in bytes, and the numbers of descriptors, greenlets, active
    watchers and objects.
    """
    with open("/proc/self/statm") as statistics:
        memory = int(statistics.read().split()[1]) * resource.getpagesize()
    return {
        "memory": memory,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "greenlets": len(living_greenlets()),
        "watchers": get_hub().loop.activecnt,
        "objects": len(gc.get_objects()),
    }


def _autocorrelation(residuals: list[float]) -> float:
    """Return the autocorrelation of consecutive residuals, limited to the range from 0 to 0.95."""
    power = sum(residual**2 for residual in residuals)
    return min(max(0.0, sum(map(mul, residuals, residuals[1:])) / power), 0.95) if power else 0.0


class ResourceGrowth:
    """The resources that were measured after each step of a run, and their rise."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []

    def add(self, measurements: dict[str, float]) -> None:
        """Add the result of :func:`measure_resources` after a step."""
        self.steps.append(measurements)

    def rises(self) -> dict[str, tuple[float, float]]:
        """Return for each resource its rise since the warm-up, and the standard error of the rise.

        The rise of memory is relative: a fraction of the memory at the end of the warm-up. The
        standard error is corrected for the autocorrelation of the residuals.
        """
        steps_after_warm_up = self.steps[int(len(self.steps) * _WARM_UP_SHARE) :]
        steps = range(len(steps_after_warm_up))
        rises = {}
        for name in _TOLERANCES:
            values = [each[name] for each in steps_after_warm_up]
            unit = (len(steps_after_warm_up) - 1) / (values[0] if name in _RELATIVE_RESOURCES else 1)
            slope, start = linear_regression(steps, values)
            residuals = [value - start - slope * step for step, value in zip(steps, values, strict=True)]
            spread = sum((step - fmean(steps)) ** 2 for step in steps)
            error = sqrt(sum(residual**2 for residual in residuals) / (len(steps_after_warm_up) - 2) / spread)
            correlation = _autocorrelation(residuals)
            rises[name] = slope * unit, error * sqrt((1 + correlation) / (1 - correlation)) * unit
        return rises

    def faults(self) -> list[str]:
        """Return a text for each resource whose rise is significant and larger than permitted."""
        if len(self.steps) < _MIN_STEPS:
            return []
        return [
            f"{name} rise by {rise:.3g}"
            for name, (rise, error) in self.rises().items()
            if rise > max(_TOLERANCES[name], _SIGNIFICANCE * error)
        ]

    def line(self) -> str:
        """Return one line of text with the rise of each resource."""
        if len(self.steps) < _MIN_STEPS:
            return f"no regression line for {len(self.steps)} steps"
        formats = {name: "{:+.2%}" if name in _RELATIVE_RESOURCES else "{:+.2f}" for name in _TOLERANCES}
        rise_texts = (f"{name} {formats[name].format(rise)}" for name, (rise, _error) in self.rises().items())
        return "rises after the warm-up: " + ", ".join(rise_texts)

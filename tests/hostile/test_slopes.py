"""What a long run says of growth: a rise is told from chance and from swings."""

from __future__ import annotations

import math
import random

import pytest

from tests.hostile.slopes import Slopes

AT_REST = {"memory": 1e8, "descriptors": 20.0, "greenlets": 5.0, "watchers": 5.0, "objects": 1e5}


def slopes_of(name: str, values: list[float]) -> Slopes:
    slopes = Slopes()
    for value in values:
        slopes.note({**AT_REST, name: value})
    return slopes


def noise(seed: int, size: float, count: int = 60) -> list[float]:
    chance = random.Random(seed)
    return [chance.gauss(0, size) for _ in range(count)]


def swings(seed: int, size: float, count: int = 60) -> list[float]:
    """Each value is near the one before."""
    found = [0.0]
    for each in noise(seed, size, count - 1):
        found.append(0.8 * found[-1] + each)
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("make", [noise, swings])
def test_chance_and_swings_are_no_rise(make, seed):
    assert slopes_of("objects", [1e5 + each for each in make(seed, 3000.0)]).faults() == []
    assert slopes_of("memory", [1e8 + each for each in make(seed, 3e6)]).faults() == []


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("make", [noise, swings])
@pytest.mark.parametrize(
    "grow", [lambda step: step / 40, lambda step: (step / 40) ** 2, lambda step: math.sqrt(max(0, step - 20))]
)
def test_growth_is_a_rise_whatever_its_shape(make, seed, grow):
    values = [1e5 + 20_000 * grow(step) + each for step, each in enumerate(make(seed, 500.0))]
    (fault,) = slopes_of("objects", values).faults()
    assert fault.startswith("objects rise by ")


def test_a_figure_that_never_moves_rises_by_nothing():
    assert slopes_of("objects", [1e5] * 60).rises()["objects"] == (0.0, 0.0)


def test_few_steps_say_nothing():
    slopes = slopes_of("objects", [1e5 + 1e6 * step for step in range(11)])
    assert slopes.faults() == [] and slopes.line() == "no slopes of 11 steps"


def test_the_rises_are_shown():
    values = [1e8 * (1 + max(0, step - 20) / 390) for step in range(60)]
    assert slopes_of("memory", values).line() == (
        "rises after the warm-up: memory +10.00%, descriptors +0.00, greenlets +0.00, watchers +0.00, objects +0.00"
    )

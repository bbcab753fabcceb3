"""What must hold in every history of a few servers; see ``every_hello.py``."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from tests.histories.every_hello import ROLES, Play

pytestmark = pytest.mark.usefixtures("virtual_time")


SINGLE, SET = {"directConnection": True}, {"replicaSet": "scripted"}


def play_all(histories: Iterable[Sequence[Sequence[str]]], **options: Any) -> None:
    faults = [(roles, Play(roles, **options).run()) for roles in histories]
    wrong = [f"{roles}: {found}" for roles, found in faults if found]
    assert not wrong, f"{len(wrong)} of {len(faults)}:\n" + "\n".join(wrong[:5])


def sequences(length: int) -> Iterable[Sequence[str]]:
    return itertools.product(ROLES, repeat=length)


@pytest.mark.requirement("SM-37", "SM-111", "SM-119")
@pytest.mark.parametrize("waits", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize("streams", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "options", [pytest.param(SINGLE, id="direct"), pytest.param(SET, id="set", marks=pytest.mark.long)]
)
def test_one_server(streams: bool, waits: bool, options: dict[str, Any]) -> None:
    play_all(([roles] for roles in sequences(2)), streams=streams, waits=waits, **options)


@pytest.mark.long
@pytest.mark.parametrize("first", ROLES)
def test_two_servers(first: str) -> None:
    play_all(([(first,), (second,)] for second in ROLES), streams=True, waits=True, **SET)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_three_servers_in_three_periods(seed: int) -> None:
    """A draw: there are five thousand million."""
    rng = random.Random(seed)
    histories = [[rng.choices(list(ROLES), k=3) for _ in range(3)] for _ in range(12)]
    play_all(histories, streams=bool(seed % 2), waits=True, **SET)

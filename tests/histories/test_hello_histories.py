"""Tests that run histories of hello replies. See ``hello_histories.py``."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from tests.histories.hello_histories import ROLES, HelloHistory

pytestmark = pytest.mark.usefixtures("virtual_time")


SINGLE, REPLICA_SET = {"directConnection": True}, {"replicaSet": "scripted"}


def assert_no_violation(histories: Iterable[Sequence[Sequence[str]]], **options: Any) -> None:
    faults = [(roles, HelloHistory(roles, **options).run()) for roles in histories]
    violations = [f"{roles}: {found}" for roles, found in faults if found]
    assert not violations, f"{len(violations)} of {len(faults)}:\n" + "\n".join(violations[:5])


def sequences_of_roles(length: int) -> Iterable[Sequence[str]]:
    return itertools.product(ROLES, repeat=length)


@pytest.mark.requirement("SM-37", "SM-111", "SM-119")
@pytest.mark.parametrize("waits", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize("streams", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "options", [pytest.param(SINGLE, id="direct"), pytest.param(REPLICA_SET, id="replica set", marks=pytest.mark.long)]
)
def test_histories_of_one_server_with_two_periods_violate_no_invariant(
    streams: bool, waits: bool, options: dict[str, Any]
) -> None:
    assert_no_violation(([roles] for roles in sequences_of_roles(2)), streams=streams, waits=waits, **options)


@pytest.mark.long
@pytest.mark.parametrize("first", ROLES)
def test_histories_of_two_servers_with_one_period_violate_no_invariant(first: str) -> None:
    assert_no_violation(([(first,), (second,)] for second in ROLES), streams=True, waits=True, **REPLICA_SET)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_random_histories_of_three_servers_violate_no_invariant(seed: int) -> None:
    """The number of possible histories is about five billion. For each seed, the test runs 12 random histories."""
    rng = random.Random(seed)
    histories = [[rng.choices(list(ROLES), k=3) for _ in range(3)] for _ in range(12)]
    assert_no_violation(histories, streams=bool(seed % 2), waits=True, **REPLICA_SET)

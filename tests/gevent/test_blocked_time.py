"""Blocked time of the loop during computations, compared with PyMongo under monkey-patching."""

from __future__ import annotations

import json

import pytest

from gmongo.testing import DeploymentProcess
from tests.gevent.comparison.driver_programs import DRIVERS, DriverProgram

pytestmark = pytest.mark.long

MIN_ROUNDS, MAX_ROUNDS = 3, 30


@pytest.fixture(scope="module")
def players():
    """Start a process of each driver, which measures on request."""
    with (
        DeploymentProcess("--standalone") as plain,
        DeploymentProcess("--standalone", "--tls") as encrypted,
        DriverProgram("blocked_time", DRIVERS[0], plain.uri, encrypted.uri) as gmongo_player,
        DriverProgram("blocked_time", DRIVERS[1], plain.uri, encrypted.uri) as pymongo_player,
    ):
        for each in (gmongo_player, pymongo_player):
            assert each.line() == "ready", each.stderr
        yield gmongo_player, pymongo_player


def blocks_less(players, activity, share):
    """True if gmongo blocks the loop for less than `share` of the time of PyMongo.

    The minimum of several rounds excludes other load of the machine. The drivers alternate, so that load affects both.
    """
    least = [float("inf")] * len(players)
    for number in range(MAX_ROUNDS):
        rounds = [measure(player, activity) for player in players]
        assert rounds[0]["turns"] > 10 or activity == "connect"
        least = [min(known, each["stall"]) for known, each in zip(least, rounds, strict=True)]
        if number + 1 >= MIN_ROUNDS and least[0] < least[1] * share:
            return True
    return False


def measure(player, activity):
    """Measure once. See :func:`tests.support.ticker.measure_longest_gap`."""
    player.send_line(activity)
    line = player.line()
    assert line, player.stderr
    return json.loads(line)


@pytest.mark.parametrize(
    "activity, share",
    [
        pytest.param("read", 0.75, id="read 15 MB with sleeps"),
        pytest.param("iterate", 0.75, id="read 15 MB"),
        pytest.param("insert", 1, id="insert 10,000 documents"),
        pytest.param("connect", 1.5, id="TLS connection"),  # OpenSSL needs the same time in both drivers
    ],
)
def test_gmongo_blocks_loop_less_than_share_of_pymongo(players, activity, share):
    assert blocks_less(players, activity, share)

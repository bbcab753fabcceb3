"""The driver never computes for long before it lets others run, compared with PyMongo under monkey-patching in the same
run. That it does not hold the loop while it waits is shown wherever a server runs in the hub of its test.
"""

from __future__ import annotations

import json

import pytest

from gmongo.testing import DeploymentProcess
from tests.gevent.beside.playing import DRIVERS, Player

pytestmark = pytest.mark.long

FEWEST, MOST = 3, 30  # rounds


@pytest.fixture(scope="module")
def players():
    """A process of each driver that takes its turn when it is told to."""
    with (
        DeploymentProcess("--standalone") as plain,
        DeploymentProcess("--standalone", "--tls") as encrypted,
        Player("stalls", DRIVERS[0], plain.uri, encrypted.uri) as ours,
        Player("stalls", DRIVERS[1], plain.uri, encrypted.uri) as theirs,
    ):
        for each in (ours, theirs):
            assert each.line() == "ready", each.complaints
        yield ours, theirs


def holds_less(players, activity, share):
    """Whether gmongo holds the loop for less than this share of the time that PyMongo holds it.

    The least of some rounds is a driver's own part, since whatever else happens on a machine only adds to it. There are
    more of them for as long as it is not so: the drivers take turns, so both are disturbed alike.
    """
    least = [float("inf")] * len(players)
    for number in range(MOST):
        rounds = [turn(player, activity) for player in players]
        assert rounds[0]["turns"] > 10 or activity == "connect"
        least = [min(known, each["stall"]) for known, each in zip(least, rounds, strict=True)]
        if number + 1 >= FEWEST and least[0] < least[1] * share:
            return True
    return False


def turn(player, activity):
    """One round; see :func:`tests.support.ticker.measured`."""
    player.go_on(activity)
    line = player.line()
    assert line, player.complaints
    return json.loads(line)


@pytest.mark.parametrize(
    "activity, share",
    [
        pytest.param("read", 0.75, id="a batch of 15 megabytes is read and iterated"),
        pytest.param("iterate", 0.75, id="an application does nothing but iterate"),
        pytest.param("insert", 1, id="10,000 documents are inserted"),
        pytest.param("connect", 1.5, id="TLS connects"),  # OpenSSL's part of a handshake is the same for both
    ],
)
def test_while(players, activity, share):
    assert holds_less(players, activity, share)

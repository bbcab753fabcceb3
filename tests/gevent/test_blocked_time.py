"""Tests of the longest time for which computations of a driver block the event loop.

The tests compare gmongo with PyMongo under monkey-patching.
"""

from __future__ import annotations

import json

import pytest

from gmongo.testing import DeploymentProcess
from tests.gevent.comparison.driver_programs import DRIVERS, DriverProgram

pytestmark = pytest.mark.long

MIN_ROUNDS, MAX_ROUNDS = 3, 30


@pytest.fixture(scope="module")
def driver_processes():
    """Start one process for each driver.

    Each process measures an activity when the test sends the name of the activity.
    """
    with (
        DeploymentProcess("--standalone") as plain,
        DeploymentProcess("--standalone", "--tls") as encrypted,
        DriverProgram("blocked_time", DRIVERS[0], plain.uri, encrypted.uri) as gmongo_process,
        DriverProgram("blocked_time", DRIVERS[1], plain.uri, encrypted.uri) as pymongo_process,
    ):
        for each in (gmongo_process, pymongo_process):
            assert each.read_line() == "ready", each.stderr
        yield gmongo_process, pymongo_process


def blocks_less(driver_processes, activity, share):
    """Return True if gmongo blocks the event loop for less than `share` of the time of PyMongo.

    The function compares the minimum of several measurements, because other load increases times. The
    measurements of the drivers alternate, so that other load of the machine affects both drivers.
    """
    min_stalls = [float("inf")] * len(driver_processes)
    for number in range(MAX_ROUNDS):
        measurements = [measure(driver_process, activity) for driver_process in driver_processes]
        assert measurements[0]["turns"] > 10 or activity == "connect"
        min_stalls = [min(known, each["stall"]) for known, each in zip(min_stalls, measurements, strict=True)]
        if number + 1 >= MIN_ROUNDS and min_stalls[0] < min_stalls[1] * share:
            return True
    return False


def measure(driver_process, activity):
    """Make a process measure an activity once.

    Return the result of :func:`tests.support.ticker.measure_longest_gap`.
    """
    driver_process.send_line(activity)
    line = driver_process.read_line()
    assert line, driver_process.stderr
    return json.loads(line)


@pytest.mark.parametrize(
    "activity, share",
    [
        pytest.param("read", 0.75, id="read 15 MB with sleeps"),
        pytest.param("iterate", 0.75, id="read 15 MB"),
        pytest.param("insert", 1, id="insert 10,000 documents"),
        # OpenSSL causes most of the blocking, so the times of gmongo and PyMongo are nearly equal.
        pytest.param("connect", 1.5, id="TLS connection"),
    ],
)
def test_driver_blocks_loop_for_less_than_given_share_of_pymongo_time(driver_processes, activity, share):
    assert blocks_less(driver_processes, activity, share)

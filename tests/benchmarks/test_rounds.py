"""Turns, and the ratios that are taken within a round."""

from __future__ import annotations

import pytest

from benchmarks.processes import WorkerFailed
from benchmarks.rounds import Ratio, Row, middle, order, ratio, ratio_to_row, take_turns


def test_each_goes_first_equally_often():
    assert [order("abc", number)[0] for number in range(6)] == list("abcabc")
    assert order("abc", 1) == ["b", "c", "a"]


def test_turns_alternate_and_each_entrant_has_one_in_a_round():
    seen = []
    found, failures = take_turns(["a", "b"], 3, lambda name: seen.append(name) or len(seen))
    assert seen == ["a", "b", "b", "a", "a", "b"]
    assert found == {"a": [1, 4, 5], "b": [2, 3, 6]}
    assert failures == {}


def test_a_contender_that_fails_drops_out_and_the_others_go_on():
    attempts = []

    def measure(name):
        attempts.append(name)
        if name == "bad" and attempts.count("bad") == 2:
            raise WorkerFailed("broke")
        return 1.0

    found, failures = take_turns(["good", "bad"], 4, measure)
    assert found == {"good": [1.0] * 4, "bad": []}
    assert failures == {"bad": "broke"}
    assert attempts.count("bad") == 2


def test_no_workload_takes_no_turns():
    assert take_turns([], 3, lambda name: name) == ({}, {})


def test_a_ratio_is_taken_within_each_round():
    row = Row("find_one", 10, "µs", {"gmongo": [1.0, 20.0, 3.0], "pymongo": [10.0, 100.0, 10.0], "floor": []}, {})
    assert ratio(row, "gmongo", "pymongo") == Ratio(0.2, pytest.approx(0.15), pytest.approx(0.25))
    assert ratio(row, "gmongo", "floor") is None
    assert ratio(row, "gmongo", "unheard of") is None
    assert middle(row, "gmongo") == 3.0
    assert middle(row, "floor") is None


def test_a_ratio_of_two_rows_is_one_contender_s_own():
    base = Row("throughput", 100, "/s", {"gmongo": [10.0, 20.0]}, {})
    row = Row("throughput", 1000, "/s", {"gmongo": [9.0, 16.0]}, {})
    assert ratio_to_row(row, base, "gmongo") == Ratio(pytest.approx(0.85), pytest.approx(0.825), pytest.approx(0.875))
    assert ratio_to_row(row, base, "floor") is None

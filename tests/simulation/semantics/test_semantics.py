"""The simulation answers as MongoDB documents it; and whatever it answers, indexes do not change it."""

from __future__ import annotations

import random

import pytest

from .cases import answer, same
from .generator import FIELDS, documents, random_call, run
from .listing import CASES, REFUSED, asked, simulation


@pytest.fixture(scope="module")
def database():
    with asked() as database:
        yield database


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_documented_answers(database, case):
    found = answer(case, database)
    assert same(found, case.expected), f"answered {found!r}, documented {case.expected!r} ({case.source})"


def test_cases_have_names_of_their_own():
    names = [(case.name, case.expected) for case in CASES]
    assert len({name for name, _ in names}) > 0.98 * len(names)
    assert len(CASES) > 400


@pytest.mark.parametrize("seed", range(8))
def test_indexes_change_no_answer(seed):
    chance = random.Random(seed)
    with simulation() as plain, simulation() as indexed:
        for path in FIELDS:
            indexed.calls.create_index(path)
        indexed.calls.create_index([("b", 1), ("c", -1)], sparse=True)
        for _ in range(120):
            stored, call = documents(chance), random_call(chance)
            try:
                found = run(indexed, stored, call)
            except Exception:  # parallel arrays cannot be inserted here
                continue
            assert same(run(plain, stored, call), found), call


def test_random_calls_are_answered_or_refused():
    chance = random.Random(0)
    answers = []
    with simulation() as database:
        for _ in range(600):
            found = run(database, documents(chance), random_call(chance))
            # An error of the simulation itself would be one of code 1.
            assert getattr(found, "code", 0) != 1
            answers.append(found)
    assert sum(found == REFUSED for found in answers) < 0.02 * len(answers)

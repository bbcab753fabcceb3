"""Tests that run ten histories of each topology, and tests that histories detect defects.
``python -m tests.histories --count 10000`` runs more histories.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gmongo import _random
from gmongo.collection import Collection
from tests.histories.actors import Inserter, Violation
from tests.histories.history import TOPOLOGIES, History

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_random_histories_violate_no_invariant(topology: str) -> None:
    done_count = 0
    for seed in range(1, 11):
        history = History(topology, seed)
        try:
            history.run()
        except Violation as violation:
            raise AssertionError(f"{topology} {seed}: {violation}\n" + "\n".join(history.faults)) from violation
        done_count += history.outcomes["Inserter done"]
    assert done_count > 50


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_histories_with_equal_seed_are_equal(topology: str) -> None:
    options = (f"--topology={topology}", "--first=3", "--count=4", "--verbose")
    command = [sys.executable, "-m", "tests.histories", *options]
    outputs = [
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.rpartition(" violations")[0]
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]


def first_violation(topology: str, seeds: range) -> str:
    """Run a history for each seed, until a history has a violation.

    Return the text of this violation, or an empty string.
    """
    for seed in seeds:
        try:
            History(topology, seed).run()
        except Violation as violation:
            return str(violation)
    return ""


class TestInvariantChecks:
    """Each test adds a defect to the driver or to an actor, and checks that a history detects the
    defect.
    """

    def test_lost_acknowledged_write_is_detected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = Collection.insert_one

        def insert_one(self: Any, document: Any, *arguments: Any, **options: Any) -> Any:
            return None if _random.random() < 0.05 else real(self, document, *arguments, **options)

        monkeypatch.setattr(Collection, "insert_one", insert_one)
        assert "acknowledged, but missing" in first_violation("replica_set", range(5))

    def test_partial_transaction_is_detected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = Collection.update_one

        def update_one(
            self: Any, target: Any, change: Any, *arguments: Any, session: Any = None, **options: Any
        ) -> Any:
            if "given" in change.get("$push", {}):
                session = None
            return real(self, target, change, session=session, **options)

        monkeypatch.setattr(Collection, "update_one", update_one)
        assert first_violation("replica_set", range(100))

    def test_operation_without_end_is_detected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import gevent

        monkeypatch.setattr(Inserter, "operate", lambda self, token: gevent.sleep(1e6))
        assert "does not end" in first_violation("standalone", range(3))

"""Some histories of each topology; ``python -m tests.histories --count 10000`` makes more of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gmongo import _random
from gmongo.collection import Collection
from tests.histories.actors import Inserter, Updater, Violation, Watcher
from tests.histories.history import TOPOLOGIES, History

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_nothing_happens_that_must_not(topology: str) -> None:
    done = 0
    for seed in range(1, 11):
        history = History(topology, seed)
        try:
            history.run()
        except Violation as violation:
            raise AssertionError(f"{topology} {seed}: {violation}\n" + "\n".join(history.told)) from violation
        done += history.outcomes["Inserter done"]
    assert done > 50


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_seed_repeats_its_history(topology: str) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.histories",
        "--topology",
        topology,
        "--first",
        "3",
        "--count",
        "4",
        "--tell",
    ]
    told = [
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.partition("minute")[0]
        for seed in ("1", "2")
    ]
    assert _without_speed(told[0]) == _without_speed(told[1])


def _without_speed(told: str) -> str:
    return told.rpartition(" violations")[0]


def found_in(topology: str, seeds: range) -> str:
    """The first violation of these histories; nothing if there is none."""
    for seed in seeds:
        try:
            History(topology, seed).run()
        except Violation as violation:
            return str(violation)
    return ""


class TestTheChecker:
    """A driver that does wrong is found out."""

    def test_a_write_that_is_acknowledged_and_not_done(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = Collection.insert_one

        def insert_one(self: Any, document: Any, *arguments: Any, **options: Any) -> Any:
            return None if _random.random() < 0.05 else real(self, document, *arguments, **options)

        monkeypatch.setattr(Collection, "insert_one", insert_one)
        assert "acknowledged, but not there" in found_in("replica_set", range(5))

    def test_a_write_that_is_done_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = Collection.update_one

        def update_one(self: Any, *arguments: Any, **options: Any) -> Any:
            if "session" not in options and _random.random() < 0.1:
                real(self, *arguments, **options)
            return real(self, *arguments, **options)

        monkeypatch.setattr(Collection, "update_one", update_one)
        assert "more than once" in found_in("standalone", range(5))

    def test_another_ones_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = Collection.find_one

        def find_one(self: Any, question: Any, *arguments: Any, **options: Any) -> Any:
            if self.name == "questions" and _random.random() < 0.2:
                question = {"_id": 0}
            return real(self, question, *arguments, **options)

        monkeypatch.setattr(Collection, "find_one", find_one)
        assert "asked for" in found_in("sharded", range(10))

    def test_half_of_a_transaction(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = Collection.update_one

        def update_one(
            self: Any, target: Any, change: Any, *arguments: Any, session: Any = None, **options: Any
        ) -> Any:
            if "given" in change.get("$push", {}):
                session = None
            return real(self, target, change, session=session, **options)

        monkeypatch.setattr(Collection, "update_one", update_one)
        assert found_in("replica_set", range(20))

    def test_a_stream_that_loses_an_event(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = Watcher._look

        def look(self: Any) -> None:
            real(self)
            if self.seen and self.seen[-1] != "last" and _random.random() < 0.1:
                self.seen.pop()

        monkeypatch.setattr(Watcher, "_look", look)
        assert "the stream told of" in found_in("replica_set", range(5))

    def test_an_error_that_is_not_documented(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def act(self: Any, token: str) -> None:
            raise KeyError(token)

        monkeypatch.setattr(Updater, "act", act)
        with pytest.raises(KeyError):
            History("standalone", 1).run()

    def test_an_operation_that_never_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import gevent

        monkeypatch.setattr(Inserter, "act", lambda self, token: gevent.sleep(1e6))
        assert "does not end" in found_in("standalone", range(3))

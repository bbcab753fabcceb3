"""What a child does first after a fork, and what it leaves alone."""

from __future__ import annotations

import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gmongo import MongoClient, _fork, _native_threads, _object_ids


class Forkable:
    def __init__(self, told: list[str]) -> None:
        self._told = told

    def mark_forked(self) -> None:
        self._told.append("marked")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in its order."""
    told: list[str] = []
    monkeypatch.setattr(_fork, "_registered", {})
    monkeypatch.setattr(_fork.gevent, "reinit", lambda: told.append("the loop is new"))
    return told


def test_a_child_marks_first_and_then_has_a_loop_of_its_own(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    living, dropped = Forkable(told), Forkable(told)
    for each in (living, dropped):
        _fork.register_after_fork(each)
    del dropped, each
    assert _fork.forkables() == [living]
    monkeypatch.setattr(_fork, "_process", -1)  # the parent's
    _fork._begin_in_child()
    assert told == ["marked", "the loop is new"]
    _fork._begin_in_child()  # as when two hooks call it
    assert told == ["marked", "the loop is new"]
    assert _fork._process == os.getpid()


def test_what_is_told_of_a_fork(told: list[str]) -> None:
    """A client's parts, its revocations, the library that encrypts, and what is the process's."""
    pytest.importorskip("OpenSSL")
    pytest.importorskip("pymongocrypt")
    from gmongo._encryption.handle import Handle, Settings
    from gmongo.wire.ocsp.verifier import Verifier

    with MongoClient("mongodb://a/", connect=False) as client:
        made = [
            client._topology,
            client._executor,
            Verifier(False, 1.0),
            Handle(Settings(kms_providers={"local": {"key": bytes(96)}})),
            _object_ids._Maker(),
            _native_threads._Calls(),
        ]
        assert [each in _fork.forkables() for each in made] == [True] * len(made)


def test_the_parent_is_left_alone(told: list[str]) -> None:
    forkable = Forkable(told)
    _fork.register_after_fork(forkable)
    _fork._begin_in_child()
    assert told == []


def test_uwsgi_shares_its_hook_out_by_its_decorators(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[object] = []
    monkeypatch.setitem(sys.modules, "uwsgidecorators", SimpleNamespace(postfork=hooks.append))
    uwsgi: Any = ModuleType("uwsgi")
    _fork._register_with_uwsgi(uwsgi)
    assert hooks == [_fork._begin_in_child]
    assert not hasattr(uwsgi, "post_fork_hook")
    monkeypatch.setitem(sys.modules, "uwsgidecorators", None)
    _fork._register_with_uwsgi(uwsgi)
    assert uwsgi.post_fork_hook is _fork._begin_in_child

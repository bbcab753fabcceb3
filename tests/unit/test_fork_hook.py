"""Tests of the fork hook, which runs in a forked child before any inherited greenlet."""

from __future__ import annotations

import os
import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gmongo import MongoClient, _fork, _native_threads, _object_ids


class RecordingForkable:
    def __init__(self, steps: list[str]) -> None:
        self._steps = steps

    def mark_forked(self) -> None:
        self._steps.append("marked")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    steps: list[str] = []
    monkeypatch.setattr(_fork, "_references", {})
    monkeypatch.setattr(_fork.gevent, "reinit", lambda: steps.append("loop reinitialized"))
    return steps


def test_child_marks_objects_before_loop_starts_again(steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    referenced, dropped = RecordingForkable(steps), RecordingForkable(steps)
    for each in (referenced, dropped):
        _fork.register_after_fork(each)
    del dropped, each
    assert _fork.list_forkables() == [referenced] and len(_fork._references) == 1
    # The hook detects a fork by the changed process ID.
    monkeypatch.setattr(_fork, "_process_id", -1)
    _fork._mark_inherited_objects()
    assert steps == ["marked", "loop reinitialized"]
    _fork._mark_inherited_objects()  # the second call of the hook has no effect
    assert steps == ["marked", "loop reinitialized"]
    assert _fork._process_id == os.getpid()


def test_all_stateful_objects_are_registered_for_fork(steps: list[str]) -> None:
    pytest.importorskip("OpenSSL")
    pytest.importorskip("pymongocrypt")
    from gmongo._encryption.handle import Handle, Settings
    from gmongo.wire.ocsp.verifier import Verifier

    with MongoClient("mongodb://a/", connect=False) as client:
        objects = [
            client._topology,
            client._executor,
            Verifier(False, 1.0),
            Handle(Settings(kms_providers={"local": {"key": bytes(96)}})),
            _object_ids._ObjectIdGenerator(),
            _native_threads._Jobs(),
        ]
        assert [each in _fork.list_forkables() for each in objects] == [True] * len(objects)


def test_hook_does_nothing_in_parent(steps: list[str]) -> None:
    forkable = RecordingForkable(steps)
    _fork.register_after_fork(forkable)
    _fork._mark_inherited_objects()
    assert steps == []


def test_import_registers_hook_for_forks_of_python_and_uwsgi(monkeypatch: pytest.MonkeyPatch) -> None:
    registered_hooks: list[dict[str, object]] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **hooks: registered_hooks.append(hooks))
    uwsgi: Any = ModuleType("uwsgi")
    monkeypatch.setitem(sys.modules, "uwsgi", uwsgi)
    monkeypatch.setitem(sys.modules, "uwsgidecorators", None)
    hook = runpy.run_path(_fork.__file__)["_mark_inherited_objects"]
    assert registered_hooks == [{"after_in_child": hook}] and uwsgi.post_fork_hook is hook


def test_uwsgi_hook_uses_decorators_if_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[object] = []
    monkeypatch.setitem(sys.modules, "uwsgidecorators", SimpleNamespace(postfork=hooks.append))
    uwsgi: Any = ModuleType("uwsgi")
    _fork._register_with_uwsgi(uwsgi)
    assert hooks == [_fork._mark_inherited_objects]
    assert not hasattr(uwsgi, "post_fork_hook")
    monkeypatch.setitem(sys.modules, "uwsgidecorators", None)
    _fork._register_with_uwsgi(uwsgi)
    assert uwsgi.post_fork_hook is _fork._mark_inherited_objects

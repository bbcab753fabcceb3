"""Test that the client of a failed test is released before the next test starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import gevent
from gmongo import MongoClient
from tests.support.greenlets import living_greenlets
from tests.support.server import ScriptedServer
from tests.support.wait import becomes_true

def test_fails():
    server = ScriptedServer(streams=True)
    server.__enter__()
    client = MongoClient(server.name)
    client.db.c.find_one()
    assert living_greenlets("monitor.Monitor ")
    raise AssertionError("expected failure")

def test_next():
    assert becomes_true(lambda: not living_greenlets("monitor.Monitor "))
"""


def test_monitors_of_failed_test_end_before_next_test(tmp_path: Path) -> None:
    (tmp_path / "test_program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, str(tmp_path)], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60
    )
    assert "1 failed, 1 passed" in result.stdout, result.stdout
    assert "expected failure" in result.stdout

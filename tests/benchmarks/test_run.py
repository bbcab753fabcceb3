"""Tests that run the benchmark program with one contender from end to end."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import main

pytestmark = pytest.mark.long

OPTIONS = ["--rounds", "1", "--operations", "4"]


def test_run_with_one_contender_writes_page(tmp_path):
    pytest.importorskip("matplotlib")
    arguments = [*OPTIONS, "--only", "find_one", "--contenders", "floor", "--greenlets", "10", "--docs", str(tmp_path)]
    assert main(arguments) == 0
    assert "| find_one | 10 |" in (tmp_path / "performance.md").read_text()
    assert (tmp_path / "performance.svg").exists()


def test_run_prints_error_of_failed_contender(tmp_path, capsys):
    file = tmp_path / "run.json"
    arguments = [*OPTIONS, "--only", "find_one", "--contenders", "floor", "--greenlets", "1", "--timeout", "1"]
    arguments[arguments.index("4")] = "100000000"
    assert main([*arguments, "--json", str(file)]) == 1
    assert "floor: not finished after 1 seconds (find_one x1)" in capsys.readouterr().out
    assert json.loads(file.read_text())["tables"]["operations"][0]["numbers"] == {"floor": []}

"""Tests that run small benchmarks from end to end."""

from __future__ import annotations

import json

import pytest

from benchmarks import crowd, stall, start
from benchmarks.__main__ import main
from benchmarks.workloads import WORKLOADS

pytestmark = pytest.mark.long

SMALL = ["--rounds", "1", "--operations", "4"]


def run(arguments: list[str], file) -> dict[str, dict[tuple[str, int | None], dict]]:
    """Run the benchmarks in this process.

    Return the measured numbers of each table, keyed by the row name and the number of greenlets.
    """
    assert main([*SMALL, *arguments, "--json", str(file)]) == 0
    tables = json.loads(file.read_text())["tables"]
    assert not any(row["failures"] for rows in tables.values() for row in rows)
    return {
        name: {(row["name"], row["greenlets"]): row["numbers"] for row in rows} for name, rows in tables.items() if rows
    }


def test_run_measures_each_operation_and_variant(tmp_path):
    names = ["find_one", "insert_one", "delete_one", "find_100", "insert_many", "insert_one+replica_set"]
    names += [name for name in WORKLOADS if name.startswith("find_one+")]
    found = run(["--only", ",".join(names), "--greenlets", "2"], tmp_path / "run.json")
    assert set(found) == {"operations"}
    assert set(found["operations"]) == {(name, 2) for name in names}
    for (name, _greenlets), numbers in found["operations"].items():
        entrants = ["gmongo", "pymongo"] if WORKLOADS[name].variant else ["gmongo", "pymongo", "floor"]
        assert {name: len(each) for name, each in numbers.items()} == dict.fromkeys(entrants, 1)
        assert all(number > 0 for each in numbers.values() for number in each)


def test_run_measures_more_greenlets_than_connections(tmp_path, monkeypatch):
    monkeypatch.setattr(crowd, "SIZES", {"gmongo": (100, 150), "floor": (100, 150)})
    found = run(["--only", "crowd"], tmp_path / "run.json")
    assert set(found["crowd"]) == {(name, size) for name in (crowd.THROUGHPUT, crowd.COST) for size in (100, 150)}


def test_run_measures_stalls(tmp_path):
    found = run(["--only", "stall"], tmp_path / "run.json")
    assert set(found["stall"]) == {(name, None) for name in stall.NAMES.values()}
    for numbers in found["stall"].values():
        assert min(*numbers["gmongo"], *numbers["pymongo"]) > 0


def test_run_measures_start_times(tmp_path):
    found = run(["--only", "start"], tmp_path / "run.json")
    assert set(found["start"]) == {(name, None) for name in (*start.IMPORTS, start.FIRST_CLIENT, start.FURTHER_CLIENT)}
    for numbers in found["start"].values():
        assert {name: len(each) for name, each in numbers.items()} == {"gmongo": 1, "pymongo": 1}


def test_run_with_one_contender_writes_page(tmp_path):
    pytest.importorskip("matplotlib")
    arguments = [*SMALL, "--only", "find_one", "--contenders", "floor", "--greenlets", "10", "--docs", str(tmp_path)]
    assert main(arguments) == 0
    assert "| find_one | 10 |" in (tmp_path / "performance.md").read_text()
    assert (tmp_path / "performance.svg").exists()


def test_run_names_failed_contender(tmp_path, capsys):
    file = tmp_path / "run.json"
    arguments = [*SMALL, "--only", "find_one", "--contenders", "floor", "--greenlets", "1", "--timeout", "1"]
    arguments[arguments.index("4")] = "100000000"
    assert main([*arguments, "--json", str(file)]) == 1
    assert "floor: not finished after 1 seconds (find_one x1)" in capsys.readouterr().out
    assert json.loads(file.read_text())["tables"]["operations"][0]["numbers"] == {"floor": []}

"""Tests that the simulation returns the recorded answers of servers, and that an index changes no
answer.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.testing import Deployment
from tests.simulation.fuzz.grammar import Grammar

from .__main__ import common_answer, main
from .case import DATA_FOLDER, DATABASE_NAME, Case, cases, difference, files, insert_documents, run_case, stable_reply
from .notation import from_json, to_json, to_line

REFUSED_CODE = 115
KNOWN_DIFFERENCES_FILE = DATA_FOLDER.with_name("known_differences.jsonl")


@contextlib.contextmanager
def simulation(version: str | None = None) -> Iterator[Any]:
    """Yield a database of a simulated replica set with one member."""
    options = {} if version is None else {"version": version}
    with Deployment.replica_set(members=1, log=False, **options) as deployment, MongoClient(deployment.uri) as client:
        yield client[DATABASE_NAME]


@pytest.fixture(scope="module")
def database_for_case() -> Iterator[Callable[[Case], Any]]:
    """Yield a function that returns a database for a case. The simulation has the server version of
    the case, or the default version if no server gave the answers.
    """
    with contextlib.ExitStack() as stack:
        databases: dict[str | None, Any] = {}

        def database_for_case(case: Case) -> Any:
            version = None if "documented" in case.fields else case.version
            if version not in databases:
                databases[version] = stack.enter_context(simulation(version))
            return databases[version]

        yield database_for_case


@pytest.mark.parametrize("file", [path.stem for path in files()])
def test_simulation_returns_recorded_answers_of_servers(file, database_for_case):
    # For each case in `known_differences.jsonl`, the answers of server and simulation must differ. If
    # the answers no longer differ, remove the case from `known_differences.jsonl`.
    entries = map(json.loads, KNOWN_DIFFERENCES_FILE.read_text("utf-8").splitlines())
    known_names = {entry["name"] for entry in entries if entry["file"] == file}
    problems = []
    for case in cases(file):
        mismatch = difference(case.expected, run_case(case, database_for_case(case)))
        if mismatch and case.name not in known_names:
            problems.append(f"{case.name}\n    {mismatch}")
        if not mismatch and case.name in known_names:
            problems.append(f"{case.name}\n    is a known difference, but does not differ")
        known_names.discard(case.name)
    problems += [f"{name}\n    is a known difference, but no case" for name in known_names]
    assert not problems, "\n".join(problems)


def test_case_names_are_unique_in_each_data_file():
    for path in files():
        names = [case.name for case in cases(path.stem)]
        assert len(set(names)) == len(names)


def test_conversion_from_and_to_json_keeps_types_and_order():
    text = (DATA_FOLDER / "expressions.jsonl").read_text("utf-8").splitlines()[0]
    for value in [json.loads(text), {"b": 1, "a": [1.0, {"$numberLong": "1"}, {"$date": "2020-01-01T00:00:00.000Z"}]}]:
        assert to_line(to_json(from_json(value))) == to_line(value)


def test_difference_contains_path_of_first_differing_value():
    recorded = [{"n": 1, "at": {"$any": "$date"}}]
    assert difference(recorded, [{"n": 1, "at": {"$date": "2020-01-01T00:00:00.000Z"}}]) is None
    assert difference(recorded, [{"n": 1, "at": 5}]) == "0.at: 5 is no $date"
    assert difference(recorded, [{"n": 1.0, "at": 5}]) == "0.n: recorded 1, answered 1.0"
    assert (
        difference(recorded, [{"at": 5, "n": 1}])
        == f"0: recorded {to_line(recorded[0])}, answered {to_line({'at': 5, 'n': 1})}"
    )


def test_common_answer_replaces_differing_values_by_their_type():
    assert common_answer([{"a": 1, "b": "x"}], [{"a": 1, "b": "y"}]) == [{"a": 1, "b": {"$any": "str"}}]
    with pytest.raises(ValueError, match='two runs answer 1 and "x"'):
        common_answer(1, "x")


def test_answer_omits_write_concern_error_after_max_time_error():
    error = {"code": 50, "codeName": "MaxTimeMSExpired"}
    assert stable_reply({"ok": 0.0, **error, "writeConcernError": error}) == error


def test_check_command_fails_if_answer_of_server_differs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tests.simulation.answers.case.DATA_FOLDER", tmp_path)
    path = tmp_path / "some.jsonl"
    path.write_text('{"name": "a count", "documents": [{"_id": 1}], "run": [{"count": "cases"}]}\n')
    with Deployment.replica_set(members=1, log=False, version="6.0.5") as deployment:
        assert main(["--record", deployment.uri, "some"]) == 0
        assert json.loads(path.read_text())["answers"] == [{"n": 1}]
        assert json.loads(path.read_text())["server"] == "6.0.5"
        assert main(["--check", deployment.uri]) == 0
        path.write_text(path.read_text().replace('"n": 1', '"n": 2'))
        assert main(["--check", deployment.uri]) == 1
    assert "some: a count\n    0.n: recorded 2, answered 1" in capsys.readouterr().out


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(8))
def test_random_reads_have_equal_answers_with_and_without_indexes(seed):
    grammar = Grammar(random.Random(seed))
    indexes = [{"key": {path: 1}, "name": path} for path in ("q", "n", "o.x", "nums", "items.v")]
    indexes.append({"key": {"s": 1, "t": -1}, "name": "pair", "sparse": True})
    create = {"createIndexes": "cases", "indexes": indexes}
    with simulation() as database:
        for _ in range(5):
            fields = {name: part for name, part in grammar.case("reads").items() if name != "each"}
            plain = run_case(Case("random", fields), database)
            created, *indexed = run_case(Case("random", {**fields, "run": [create, *fields["run"]]}), database)
            assert "code" in created or difference(plain, indexed) is None, to_line(fields)


def test_simulation_rarely_refuses_random_reads_of_supported_operators():
    grammar = Grammar(random.Random(0))
    replies = []
    with simulation() as database:
        for case in (Case("random", grammar.case("reads")) for _ in range(25)):
            insert_documents(case, database)
            replies += [database.command(from_json(command), check=False) for command in case.fields["run"]]
    assert 1 not in [reply.get("code") for reply in replies]  # the simulation returns code 1 for an internal error
    refusals = [reply["errmsg"] for reply in replies if reply.get("code") == REFUSED_CODE]
    expected = ("support $", "support a malformed", "support an unsupported keyword of $jsonSchema")
    unexpected = [message for message in refusals if not any(text in message for text in expected)]
    assert len(unexpected) < 0.01 * len(replies), unexpected

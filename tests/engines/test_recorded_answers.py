"""The cases of the recorded answers run on each engine.

If the replies to gmongo differ from the recorded answers, the test compares the replies to gmongo
with the replies to PyMongo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import bson
import gevent
import pymongo
import pytest

import gmongo
import gmongo.database
from gmongo.operations.run_command import RunCommand
from gmongo.wire.message import encode_op_msg
from tests.differential.call_runner import CallRunner
from tests.differential.call_timeouts import SilentServerError, interrupt_after
from tests.differential.differences import FAULT_NAMES
from tests.simulation.answers.case import Case, cases, difference, files, insert_documents, run_case
from tests.simulation.answers.notation import is_wrapper

from .engine import Server, rows_to_run

_TIMEOUT = 5
# Number of runs that detect whether replies are random. For example, an engine may report errors in a
# random order.
_REPEAT_COUNT = 5
_SILENT_ERROR_NAME = SilentServerError.__name__
_DATABASE = "gmongo_answers"
_WRITE_FIELDS = ("documents", "updates", "deletes")


class Databases:
    """A `Database` object of gmongo and a `Database` object of PyMongo for one database on an engine.

    If a case makes the database unusable, later cases use a new database.
    """

    def __init__(self, gmongo_client: Any, pymongo_client: Any) -> None:
        self._clients = gmongo_client, pymongo_client
        self._number = 0

    def prepare_for(self, case: Case) -> tuple[Any, Any]:
        """Store the documents of a case in the database.

        Return the `Database` object of gmongo and the `Database` object of PyMongo.
        """
        try:
            with gevent.Timeout(_TIMEOUT, SilentServerError):
                insert_documents(case, self._current_objects[0])
        except Exception:
            self._number += 1
        return self._current_objects

    @property
    def _current_objects(self) -> tuple[Any, Any]:
        gmongo_database, pymongo_database = (client[f"{_DATABASE}_{self._number}"] for client in self._clients)
        return gmongo_database, pymongo_database


@pytest.fixture(scope="module")
def databases(server: Server) -> Iterator[Databases]:
    with gmongo.MongoClient(server.uri) as gmongo_client, pymongo.MongoClient(server.uri) as pymongo_client:
        yield Databases(gmongo_client, pymongo_client)


def _outcome_of(case: Case, database: Any) -> Any:
    """Run a case with one driver. Return the replies, or the class name of the error that the driver
    raises.
    """
    is_ours = isinstance(database, gmongo.database.Database)
    try:
        with gevent.Timeout(_TIMEOUT, SilentServerError) if is_ours else interrupt_after(_TIMEOUT):
            return run_case(case, database)
    except Exception as error:
        return type(error).__name__


def _are_equal_without_ids(first: Any, second: Any) -> bool:
    return difference(_without_generated_ids(first), _without_generated_ids(second)) is None


def _without_generated_ids(value: Any) -> Any:
    """Return a copy of a value in which a type name replaces each ID, timestamp and binary value."""
    if is_wrapper(value) and next(iter(value)) in ("$oid", "$timestamp", "$binary"):
        return next(iter(value))
    if isinstance(value, dict):
        return {name: _without_generated_ids(part) for name, part in value.items()}
    return [_without_generated_ids(part) for part in value] if isinstance(value, list) else value


def _is_repeatable(case: Case, database: Any, outcome: Any) -> bool:
    """Return True if the engine sends equal replies in repeated runs of a case with one driver."""
    return all(_are_equal_without_ids(outcome, _outcome_of(case, database)) for _ in range(_REPEAT_COUNT))


def _outcome_with_document_sequences(case: Case, database: Any) -> Any:
    """Run a case with gmongo, but send written documents in document sequences, as PyMongo does."""
    original_command = RunCommand.command

    def command(operation: Any, hello: Any) -> Any:
        fields = original_command(operation, hello)
        write_fields = [name for name in _WRITE_FIELDS if isinstance(fields.get(name), list)]
        operation.sections = [(name, list(map(bson.encode, fields.pop(name)))) for name in write_fields]
        return fields

    def message(operation: Any, request_id: int, flags: int, body: bytes, _hello: Any) -> Any:
        return encode_op_msg(request_id, flags, body, operation.sections)

    with mock.patch.multiple(RunCommand, command=command, message=message):
        return _outcome_of(case, database)


def _works_with_pymongo(case: Case, simulation: CallRunner) -> bool:
    """Return True if PyMongo returns the recorded answers on the simulation.

    In some cases, PyMongo raises an error instead.
    """
    with pymongo.MongoClient(simulation.uri) as client:
        return difference(case.expected, _outcome_of(case, client[_DATABASE])) is None


@pytest.mark.parametrize("file", rows_to_run([path.stem for path in files()]))
def test_reply_to_gmongo_equals_recorded_answer_or_reply_to_pymongo(
    server: Server, databases: Databases, simulation: Callable[[], CallRunner], outcome_counts: Counter[str], file: str
) -> None:
    problems = []
    for case in cases(file):
        gmongo_database, pymongo_database = databases.prepare_for(case)
        outcome = _outcome_of(case, gmongo_database)
        if difference(case.expected, outcome) is None:
            outcome_counts["equal to recording"] += 1
            continue
        pymongo_outcome = _outcome_of(case, pymongo_database)
        if outcome == pymongo_outcome == _SILENT_ERROR_NAME:
            outcome_counts["no reply to both drivers"] += 1
            server.restart_if_hung()
        elif _are_equal_without_ids(outcome, pymongo_outcome):
            outcome_counts["equal replies that differ from the recording"] += 1
        elif not (
            _is_repeatable(case, pymongo_database, pymongo_outcome) and _is_repeatable(case, gmongo_database, outcome)
        ):
            outcome_counts["random replies to one driver"] += 1
        elif not _works_with_pymongo(case, simulation()):
            outcome_counts["unsupported by PyMongo"] += 1
        elif _are_equal_without_ids(pymongo_outcome, _outcome_with_document_sequences(case, gmongo_database)):
            outcome_counts["depends on document sequences"] += 1
        elif pymongo_outcome in list(FAULT_NAMES) and outcome != pymongo_outcome:
            outcome_counts["PyMongo fails"] += 1
        else:
            problems.append(
                f"{case.name}: PyMongo gets {pymongo_outcome!r}, gmongo gets {outcome!r}; recorded {case.expected!r}"
            )
    assert not problems, "\n".join(problems)

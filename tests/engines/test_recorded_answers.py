"""The cases of the recorded answers run on each engine.

If an engine does not return the recorded answers to gmongo, its replies to gmongo and to PyMongo
must be equal.
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

        Return the object of gmongo and the object of PyMongo.
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


def _reply_to(case: Case, database: Any) -> Any:
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
    """Return a copy of a value without IDs that differ in each run."""
    if is_wrapper(value) and next(iter(value)) in ("$oid", "$timestamp", "$binary"):
        return next(iter(value))
    if isinstance(value, dict):
        return {name: _without_generated_ids(part) for name, part in value.items()}
    return [_without_generated_ids(part) for part in value] if isinstance(value, list) else value


def _is_repeatable(case: Case, database: Any, reply: Any) -> bool:
    """Return True if the engine sends equal replies in repeated runs of a case with one driver."""
    return all(_are_equal_without_ids(reply, _reply_to(case, database)) for _ in range(_REPEAT_COUNT))


def _reply_to_command_of_pymongo(case: Case, database: Any) -> Any:
    """Return the reply to a case that gmongo sends in document sequences, as PyMongo does."""
    original_command = RunCommand.command

    def command(operation: Any, hello: Any) -> Any:
        fields = original_command(operation, hello)
        write_fields = [name for name in _WRITE_FIELDS if isinstance(fields.get(name), list)]
        operation.sections = [(name, list(map(bson.encode, fields.pop(name)))) for name in write_fields]
        return fields

    def message(operation: Any, request_id: int, flags: int, body: bytes, _hello: Any) -> Any:
        return encode_op_msg(request_id, flags, body, operation.sections)

    with mock.patch.multiple(RunCommand, command=command, message=message):
        return _reply_to(case, database)


def _works_with_pymongo(case: Case, simulation: CallRunner) -> bool:
    """Return True if PyMongo returns the recorded answer on the simulation.

    In some cases, PyMongo raises an error instead.
    """
    with pymongo.MongoClient(simulation.uri) as client:
        return difference(case.expected, _reply_to(case, client[_DATABASE])) is None


@pytest.mark.parametrize("file", rows_to_run([path.stem for path in files()]))
def test_reply_to_gmongo_equals_recorded_answer_or_reply_to_pymongo(
    server: Server, databases: Databases, simulation: Callable[[], CallRunner], outcome_counts: Counter[str], file: str
) -> None:
    problems = []
    for case in cases(file):
        gmongo_database, pymongo_database = databases.prepare_for(case)
        reply = _reply_to(case, gmongo_database)
        if difference(case.expected, reply) is None:
            outcome_counts["equal to recording"] += 1
            continue
        pymongo_reply = _reply_to(case, pymongo_database)
        if reply == pymongo_reply == _SILENT_ERROR_NAME:
            outcome_counts["no reply to both drivers"] += 1
            server.restart_if_hung()
        elif _are_equal_without_ids(reply, pymongo_reply):
            outcome_counts["equal replies that differ from the recording"] += 1
        elif not (
            _is_repeatable(case, pymongo_database, pymongo_reply) and _is_repeatable(case, gmongo_database, reply)
        ):
            outcome_counts["random replies to one driver"] += 1
        elif not _works_with_pymongo(case, simulation()):
            outcome_counts["unsupported by PyMongo"] += 1
        elif _are_equal_without_ids(pymongo_reply, _reply_to_command_of_pymongo(case, gmongo_database)):
            outcome_counts["depends on document sequences"] += 1
        elif pymongo_reply in list(FAULT_NAMES) and reply != pymongo_reply:
            outcome_counts["PyMongo fails"] += 1
        else:
            problems.append(
                f"{case.name}: PyMongo gets {pymongo_reply!r}, gmongo gets {reply!r}; recorded {case.expected!r}"
            )
    assert not problems, "\n".join(problems)

"""The documented answers on each engine. What it answers otherwise, it answers PyMongo too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import bson
import gevent
import pymongo
import pymongo.errors
import pytest

import gmongo
import gmongo.database
import gmongo.errors
from gmongo.operations.run_command import RunCommand
from gmongo.wire.message import encode_op_msg
from tests.differential.differences import ACCIDENTS
from tests.differential.patience import SILENT, SilentServerError, interrupted
from tests.differential.scene import Scene
from tests.simulation.semantics.cases import Case, Error, answer, prepare, same
from tests.simulation.semantics.listing import CASES

from .engine import Server, rows_to_play

_PATIENCE = 5
_REPEATS = 5  # what looks at fields in the order of a hash finds another fault first, now and then
_SILENCE = SilentServerError.__name__
_DATABASE = "gmongo_semantics"
_WRITTEN = ("documents", "updates", "deletes")


class Databases:
    """A database as gmongo and as PyMongo see it; another one, where what a case has left cannot be dropped."""

    def __init__(self, ours: Any, theirs: Any) -> None:
        self._clients = ours, theirs
        self._number = 0

    def fit_for(self, case: Case) -> tuple[Any, Any]:
        """One in which the documents of a case can be put, if there is any such."""
        try:
            with gevent.Timeout(_PATIENCE, SilentServerError):
                prepare(case, self._present[0])
        except Exception:
            self._number += 1
        return self._present

    @property
    def _present(self) -> tuple[Any, Any]:
        ours, theirs = (client[f"{_DATABASE}_{self._number}"] for client in self._clients)
        return ours, theirs


@pytest.fixture(scope="module")
def databases(server: Server) -> Iterator[Databases]:
    with gmongo.MongoClient(server.uri) as ours, pymongo.MongoClient(server.uri) as theirs:
        yield Databases(ours, theirs)


def _answer(case: Case, database: Any) -> Any:
    """What a driver hears: a value, an error's code, or the name of an error of its own."""
    is_ours = isinstance(database, gmongo.database.Database)
    try:
        with gevent.Timeout(_PATIENCE, SilentServerError) if is_ours else interrupted(_PATIENCE):
            return answer(case, database)
    except (gmongo.errors.OperationFailure, pymongo.errors.OperationFailure) as error:
        return Error(error.code or 0)
    except Exception as error:
        return type(error).__name__


def _repeats(case: Case, database: Any, found: Any) -> bool:
    """Whether a driver hears the same each time, when nothing but it is asked: one may leave what the other finds."""
    return all(same(found, _answer(case, database)) for _ in range(_REPEATS))


def _answer_to_what_pymongo_sends(case: Case, database: Any) -> Any:
    """What gmongo hears if what a given command writes travels beside it, as PyMongo sends it."""
    as_given = RunCommand.command

    def command(operation: Any, hello: Any) -> Any:
        fields = as_given(operation, hello)
        written = [name for name in _WRITTEN if isinstance(fields.get(name), list)]
        operation.beside = [(name, list(map(bson.encode, fields.pop(name)))) for name in written]
        return fields

    def message(operation: Any, request_id: int, flags: int, body: bytes, _hello: Any) -> Any:
        return encode_op_msg(request_id, flags, body, operation.beside)

    with mock.patch.multiple(RunCommand, command=command, message=message):
        return _answer(case, database)


def _takes_pymongo(case: Case, simulation: Scene) -> bool:
    """Whether a case can be asked through PyMongo: some catch gmongo's errors."""
    with pymongo.MongoClient(simulation.uri) as client:
        return same(_answer(case, client[_DATABASE]), case.expected)


@pytest.mark.parametrize("case", rows_to_play(CASES), ids=lambda case: case.name)
def test_answers(
    server: Server, databases: Databases, simulation: Callable[[], Scene], tally: Counter[str], case: Case
) -> None:
    ours, theirs = databases.fit_for(case)
    found = _answer(case, ours)
    if same(found, case.expected):
        tally["as documented"] += 1
        return
    heard = [_answer(case, theirs)]
    if found == heard[0] == _SILENCE:
        tally["silence, to both drivers"] += 1
        server.revive()
        pytest.skip(SILENT)
    if not (_repeats(case, theirs, heard[0]) and _repeats(case, ours, found)):
        tally["twice in two ways"] += 1
        pytest.skip("it answers a driver twice in two ways")
    if not same(found, heard[0]) and not _takes_pymongo(case, simulation()):
        tally["not for PyMongo"] += 1
        pytest.skip("its call is for gmongo: PyMongo fails it on a simulated deployment, too")
    if not same(found, heard[0]) and same(heard[0], _answer_to_what_pymongo_sends(case, ours)):
        tally["by how it is sent"] += 1
        pytest.skip("it answers by how a command is sent: PyMongo sends what a given one writes beside it")
    if heard[0] in list(ACCIDENTS) and found != heard[0]:
        tally["PyMongo stumbles"] += 1
        pytest.skip(f"PyMongo stumbles over its answer ({heard[0]})")
    assert same(found, heard[0]), f"PyMongo hears {heard[0]!r}, gmongo {found!r}; documented {case.expected!r}"
    tally["otherwise, to both drivers"] += 1

"""The recorded answers on each engine. An engine that answers otherwise answers both drivers alike."""

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
from tests.differential.differences import ACCIDENTS
from tests.differential.patience import SilentServerError, interrupted
from tests.differential.scene import Scene
from tests.simulation.answers.case import Case, cases, difference, files, prepare, run
from tests.simulation.answers.notation import is_wrapper

from .engine import Server, rows_to_play

_PATIENCE = 5
_REPEATS = 5  # what looks at fields in the order of a hash finds another fault first, now and then
_SILENCE = SilentServerError.__name__
_DATABASE = "gmongo_answers"
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
    """Return the answers that a driver gets, or the name of an error of its own."""
    is_ours = isinstance(database, gmongo.database.Database)
    try:
        with gevent.Timeout(_PATIENCE, SilentServerError) if is_ours else interrupted(_PATIENCE):
            return run(case, database)
    except Exception as error:
        return type(error).__name__


def _same(first: Any, second: Any) -> bool:
    return difference(_without_identities(first), _without_identities(second)) is None


def _without_identities(value: Any) -> Any:
    """Replace the values that a server makes anew for each run."""
    if is_wrapper(value) and next(iter(value)) in ("$oid", "$timestamp", "$binary"):
        return next(iter(value))
    if isinstance(value, dict):
        return {name: _without_identities(part) for name, part in value.items()}
    return [_without_identities(part) for part in value] if isinstance(value, list) else value


def _repeats(case: Case, database: Any, found: Any) -> bool:
    """Whether a driver hears the same each time, when nothing but it is asked: one may leave what the other finds."""
    return all(_same(found, _answer(case, database)) for _ in range(_REPEATS))


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
        return difference(case.expected, _answer(case, client[_DATABASE])) is None


@pytest.mark.parametrize("file", rows_to_play([path.stem for path in files()]))
def test_answers(
    server: Server, databases: Databases, simulation: Callable[[], Scene], tally: Counter[str], file: str
) -> None:
    problems = []
    for case in cases(file):
        ours, theirs = databases.fit_for(case)
        found = _answer(case, ours)
        if difference(case.expected, found) is None:
            tally["as recorded"] += 1
            continue
        heard = _answer(case, theirs)
        if found == heard == _SILENCE:
            tally["silence, to both drivers"] += 1
            server.revive()
        elif _same(found, heard):
            tally["otherwise, to both drivers"] += 1
        elif not (_repeats(case, theirs, heard) and _repeats(case, ours, found)):
            tally["twice in two ways"] += 1
        elif not _takes_pymongo(case, simulation()):
            tally["not for PyMongo"] += 1
        elif _same(heard, _answer_to_what_pymongo_sends(case, ours)):
            tally["by how it is sent"] += 1
        elif heard in list(ACCIDENTS) and found != heard:
            tally["PyMongo stumbles"] += 1
        else:
            problems.append(f"{case.name}: PyMongo gets {heard!r}, gmongo {found!r}; recorded {case.expected!r}")
    assert not problems, "\n".join(problems)

"""The documented answers on each engine. What it answers otherwise, it answers PyMongo too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import gevent
import pymongo
import pymongo.errors
import pytest

import gmongo
import gmongo.database
import gmongo.errors
from gmongo.operations.run_command import RunCommand
from tests.differential.differences import ACCIDENTS
from tests.differential.patience import SILENT, SilentServerError, interrupted
from tests.differential.scene import Scene
from tests.simulation.semantics.cases import Case, Error, answer, same
from tests.simulation.semantics.listing import CASES

from .engine import Server, rows_to_play

_PATIENCE = 5
_REPEATS = 5  # what looks at fields in the order of a hash finds another fault first, now and then
_SILENCE = SilentServerError.__name__
_DATABASE = "gmongo_semantics"
_WRITTEN = ("documents", "updates", "deletes")


@pytest.fixture(scope="module")
def databases(server: Server) -> Iterator[tuple[Any, Any]]:
    """A database as gmongo and as PyMongo see it."""
    with gmongo.MongoClient(server.uri) as ours, pymongo.MongoClient(server.uri) as theirs:
        yield ours[_DATABASE], theirs[_DATABASE]


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
    """What gmongo hears if what a command writes comes last, as PyMongo sends it."""
    as_given = RunCommand.command

    def reordered(operation: RunCommand, hello: Any) -> Any:
        return dict(sorted(as_given(operation, hello).items(), key=lambda field: field[0] in _WRITTEN))

    with mock.patch.object(RunCommand, "command", reordered):
        return _answer(case, database)


def _takes_pymongo(case: Case, simulation: Scene) -> bool:
    """Whether a case can be asked through PyMongo: some catch gmongo's errors."""
    with pymongo.MongoClient(simulation.uri) as client:
        return same(_answer(case, client[_DATABASE]), case.expected)


@pytest.mark.parametrize("case", rows_to_play(CASES), ids=lambda case: case.name)
def test_answers(
    server: Server, databases: tuple[Any, Any], simulation: Callable[[], Scene], tally: Counter[str], case: Case
) -> None:
    ours, theirs = databases
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
        tally["by the order of fields"] += 1
        pytest.skip("which fault it tells of depends on the order of a command's fields, and PyMongo sends another")
    if heard[0] in list(ACCIDENTS) and found != heard[0]:
        tally["PyMongo stumbles"] += 1
        pytest.skip(f"PyMongo stumbles over its answer ({heard[0]})")
    assert same(found, heard[0]), f"PyMongo hears {heard[0]!r}, gmongo {found!r}; documented {case.expected!r}"
    tally["otherwise, to both drivers"] += 1

"""The annotation of every public parameter, beside PyMongo's: what a list may be given to there, it may be here."""

from __future__ import annotations

import collections.abc
import inspect
import sys
import typing
from typing import Any

import pymongo.collection
import pymongo.database
import pymongo.mongo_client
import pytest

import gmongo.collection
import gmongo.database
import gmongo.mongo_client

PAIRS: list[tuple[type, type]] = [
    (pymongo.collection.Collection, gmongo.collection.Collection),
    (pymongo.database.Database, gmongo.database.Database),
    (pymongo.mongo_client.MongoClient, gmongo.mongo_client.MongoClient),
    *((getattr(pymongo, name), getattr(gmongo, name)) for name in ("UpdateOne", "UpdateMany", "ReplaceOne")),
]
# A `list[Mapping]` takes no `list[dict]`, since something else could be put into it.
INVARIANT = {list, dict, set, collections.abc.MutableMapping, collections.abc.MutableSequence}
METHODS = [
    pytest.param(theirs, ours, name, id=f"{ours.__name__}.{name}")
    for theirs, ours in PAIRS
    for name, _ in inspect.getmembers(ours, inspect.isfunction)
    if (not name.startswith("_") or name == "__init__") and hasattr(theirs, name)
]


def _hints(function: Any) -> dict[str, Any]:
    """The types of parameters; what modules import for type checkers only is looked up in all others."""
    function = inspect.unwrap(function)
    package = function.__module__.partition(".")[0]
    known: dict[str, Any] = {**vars(typing), **vars(collections.abc), "bson": sys.modules["bson"]}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in (package, "bson"):
            known |= {key: value for key, value in vars(module).items() if not key.startswith("__")}
    return typing.get_type_hints(function, {**known, **vars(sys.modules[function.__module__])})


def _invariant(hint: Any) -> set[Any]:
    """The containers in a type, at any depth, that take nothing but exactly what they name."""
    found = {origin} if (origin := typing.get_origin(hint)) in INVARIANT else set()
    return found.union(*(_invariant(each) for each in typing.get_args(hint)))


@pytest.mark.parametrize(("theirs", "ours", "name"), METHODS)
def test_no_parameter_is_narrower(theirs: type, ours: type, name: str) -> None:
    one, other = _hints(getattr(theirs, name)), _hints(getattr(ours, name))
    for parameter in (one.keys() & other.keys()) - {"return"}:
        assert _invariant(other[parameter]) <= _invariant(one[parameter]), parameter


def test_there_are_many() -> None:
    assert len(METHODS) > 50

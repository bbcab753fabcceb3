"""The annotations of public parameters accept each container that PyMongo's annotations accept."""

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

CLASS_PAIRS: list[tuple[type, type]] = [
    (pymongo.collection.Collection, gmongo.collection.Collection),
    (pymongo.database.Database, gmongo.database.Database),
    (pymongo.mongo_client.MongoClient, gmongo.mongo_client.MongoClient),
    *((getattr(pymongo, name), getattr(gmongo, name)) for name in ("UpdateOne", "UpdateMany", "ReplaceOne")),
]
# Invariant types: a parameter of the type `list[Mapping]` accepts no `list[dict]`, because the
# function may append a mapping that is no dict.
INVARIANT_TYPES = {list, dict, set, collections.abc.MutableMapping, collections.abc.MutableSequence}
METHODS = [
    pytest.param(theirs, ours, name, id=f"{ours.__name__}.{name}")
    for theirs, ours in CLASS_PAIRS
    for name, _ in inspect.getmembers(ours, inspect.isfunction)
    if (not name.startswith("_") or name == "__init__") and hasattr(theirs, name)
]


def _parameter_types(function: Any) -> dict[str, Any]:
    """Return the types of a function's parameters and, as ``return``, of the result.

    Some names exist only under ``TYPE_CHECKING``. Search these names in all modules of the package.
    """
    function = inspect.unwrap(function)
    package = function.__module__.partition(".")[0]
    known_names: dict[str, Any] = {**vars(typing), **vars(collections.abc), "bson": sys.modules["bson"]}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in (package, "bson"):
            known_names |= {key: value for key, value in vars(module).items() if not key.startswith("__")}
    return typing.get_type_hints(function, {**known_names, **vars(sys.modules[function.__module__])})


def _invariant_types(hint: Any) -> set[Any]:
    """Return the invariant container types that a type contains at any depth."""
    own_types = {origin} if (origin := typing.get_origin(hint)) in INVARIANT_TYPES else set()
    return own_types.union(*(_invariant_types(each) for each in typing.get_args(hint)))


@pytest.mark.parametrize(("pymongo_class", "gmongo_class", "method"), METHODS)
def test_parameter_type_is_not_narrower_than_in_pymongo(pymongo_class: type, gmongo_class: type, method: str) -> None:
    theirs, ours = _parameter_types(getattr(pymongo_class, method)), _parameter_types(getattr(gmongo_class, method))
    for parameter in (theirs.keys() & ours.keys()) - {"return"}:
        assert _invariant_types(ours[parameter]) <= _invariant_types(theirs[parameter]), parameter


def test_comparison_of_parameter_types_covers_more_than_50_methods() -> None:
    assert len(METHODS) > 50

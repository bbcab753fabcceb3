"""Calls that the cases from the manual have in common."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from .calls import attempt
from .cases import OPERATION_FAILURES


def page(name: str) -> str:
    return f"manual: {name}"


def date(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts)  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """The value with plain integers and plain dictionaries, their fields in order of names."""
    if isinstance(value, dict):
        return {name: plain(value[name]) for name in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def plainly(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The answer where neither the order of fields nor the size of integers is compared."""
    return lambda collection: plain(call(collection))


def refused(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Whether a call is refused."""

    def run(collection: Any) -> str:
        try:
            call(collection)
        except OPERATION_FAILURES:
            return "refused"
        return "accepted"

    return run


def code(call: Callable[[], Any]) -> Any:
    """The code with which a call fails, or none."""
    return attempt(lambda _collection: call())(None)


def tried(call: Callable[[Any], Any], collection: Any) -> Any:
    """The answer of a call, or its error's code."""
    try:
        return call(collection)
    except OPERATION_FAILURES as error:
        return ("code", error.code)


def everything(collection: Any) -> Any:
    return plain(list(collection.find({}, sort=[("_id", 1)])))


def ids(collection: Any) -> Any:
    return sorted(document["_id"] for document in collection.find())


def insert(*documents: Any) -> Callable[[Any], Any]:
    return lambda collection: collection.insert_many([dict(document) for document in documents])


def index(keys: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda collection: collection.create_index(keys, **options)


def indexes(collection: Any) -> Any:
    return {index["name"]: index for index in collection.list_indexes()}


def modify(**options: Any) -> Callable[[Any], Any]:
    return lambda collection: collection.database.command({"collMod": collection.name, **options})


def made(name: str, call: Callable[[Any], Any], **options: Any) -> Callable[[Any], Any]:
    """The answer of a call on a collection made with options."""

    def run(collection: Any) -> Any:
        database = collection.database
        database.drop_collection(name)
        database.command({"create": name, **options})
        try:
            return call(database[name])
        finally:
            database.drop_collection(name)

    return run


def listed(collection: Any) -> Any:
    (found,) = collection.database.list_collections(filter={"name": collection.name})
    return found


def shown(value: Any, show: Callable[[Any], Any]) -> Any:
    """What is compared of an answer."""
    return show(value)

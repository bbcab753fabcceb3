"""What the calls of cases are made of, beside those of ``cases``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cases import OPERATION_FAILURES

Call = Callable[[Any], Any]


def command(name: str, *, of: Call = lambda reply: reply["ok"], **fields: Any) -> Call:
    """A part of a command's reply.

    :param name: the command; its value is the collection's name.
    :param of: takes the part out of the reply; ``ok`` if it is not given.
    """
    return lambda collection: of(collection.database.command({name: collection.name, **fields}))


def after(*calls: Call) -> Call:
    """The answer of the last of several calls."""

    def run(collection: Any) -> Any:
        found = None
        for call in calls:
            found = call(collection)
        return found

    return run


def attempt(call: Call) -> Call:
    """The code with which a call fails, or none."""

    def run(collection: Any) -> Any:
        try:
            call(collection)
        except OPERATION_FAILURES as error:
            return error.code
        return None

    return run


def made(**options: Any) -> Call:
    """Makes the collection anew, with options."""

    def run(collection: Any) -> Any:
        collection.drop()
        collection.database.create_collection(collection.name, **options)

    return run


def stored(collection: Any) -> Any:
    """All documents, by their IDs."""
    return list(collection.find({}, sort=[("_id", 1)]))

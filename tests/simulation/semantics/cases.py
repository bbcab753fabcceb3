"""The form of the cases: documents, a call, and MongoDB's answer with where it is documented."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pymongo.errors

import gmongo.errors

# The cases are asked through gmongo, and through PyMongo too where a server of another make is judged.
OPERATION_FAILURES = (gmongo.errors.OperationFailure, pymongo.errors.OperationFailure)
BULK_WRITE_ERRORS = (gmongo.errors.BulkWriteError, pymongo.errors.BulkWriteError)
WRITE_ERRORS = (gmongo.errors.WriteError, pymongo.errors.WriteError)


@dataclass(frozen=True)
class Error:
    """The answer is an error.

    :param code: its code.
    """

    code: int


@dataclass(frozen=True)
class Case:
    """One case.

    :param call: is run on the collection that has the documents, and returns what is compared.
    :param expected: MongoDB's answer.
    :param source: where it is documented: a page of the manual, or a file of the server's sources.
    :param others: the documents of another collection, ``others``.
    """

    name: str
    documents: Sequence[Any]
    call: Callable[[Any], Any]
    expected: Any
    source: str
    others: Sequence[Any] = ()


def find(filter: Any, **options: Any) -> Callable[[Any], Any]:
    """The values of ``_id`` that a find returns."""
    return lambda collection: [document["_id"] for document in collection.find(filter, **options)]


def project(projection: Any, filter: Any = None) -> Callable[[Any], Any]:
    """The first document as a find projects it."""
    return lambda collection: collection.find_one(filter or {}, projection)


def aggregate(*stages: Any, **options: Any) -> Callable[[Any], Any]:
    """The documents that a pipeline makes."""
    return lambda collection: list(collection.aggregate(list(stages), **options))


def evaluate(expression: Any) -> Callable[[Any], Any]:
    """The value of an expression for the first document; ``<missing>`` if it has none."""

    def run(collection: Any) -> Any:
        (found,) = collection.aggregate([{"$limit": 1}, {"$project": {"_id": 0, "r": expression}}])
        return found.get("r", "<missing>")

    return run


def update(filter: Any, change: Any, **options: Any) -> Callable[[Any], Any]:
    """The first document after an update."""

    def run(collection: Any) -> Any:
        collection.update_one(filter, change, **options)
        return collection.find_one({}, sort=[("_id", 1)])

    return run


def prepare(case: Case, database: Any) -> None:
    """Put there the documents of a case, and nothing else."""
    database.drop_collection("cases")
    database.drop_collection("others")
    if case.documents:
        database.cases.insert_many([dict(document) for document in case.documents])
    if case.others:
        database.others.insert_many([dict(document) for document in case.others])


def answer(case: Case, database: Any) -> Any:
    """What a server answers."""
    prepare(case, database)
    try:
        return case.call(database.cases)
    except OPERATION_FAILURES as error:
        return Error(error.code or 0)


def same(found: Any, expected: Any) -> bool:
    """Whether an answer is the expected one, in the types of its values too."""
    if isinstance(expected, float) and isinstance(found, float):
        return found == expected or (found != found and expected != expected)
    if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict) and isinstance(found, dict):
        return list(found) == list(expected) and all(same(found[name], expected[name]) for name in expected)
    numbers = (bool, int, float)
    if isinstance(expected, numbers) or isinstance(found, numbers):
        return type(found) is type(expected) and found == expected
    return bool(found == expected)

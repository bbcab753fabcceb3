"""Tests that call each method with values of all types for each parameter.

The signatures of PyMongo determine the tested parameters. The tests therefore include new
parameters of a new PyMongo version.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pymongo.collection
import pymongo.database
import pymongo.mongo_client
import pytest

from .call_runner import CallRunner, Outcome
from .differences import explained
from .servers import on_the_simulation

ODD_VALUES: dict[str, Any] = {
    "None": None,
    "True": True,
    "0": 0,
    "-1": -1,
    "1.5": 1.5,
    "'x'": "x",
    "''": "",
    "b'x'": b"x",
    "[]": [],
    "[1]": [1],
    "{}": {},
    "{'x': 1}": {"x": 1},
    "object": object(),
}
LARGE = "x" * 100_000

SET = {"$set": {"a": 1}}
# Arguments that a call of a method needs in addition to the tested parameter.
COLLECTION: dict[str, dict[str, Any]] = {
    "insert_one": {"document": {"_id": 50}},
    "insert_many": {"documents": [{"_id": 50}, {"_id": 51}]},
    "update_one": {"filter": {"_id": 1}, "update": SET},
    "update_many": {"filter": {"kind": 1}, "update": SET},
    "replace_one": {"filter": {"_id": 1}, "replacement": {"a": 1}},
    "delete_one": {"filter": {"_id": 1}},
    "delete_many": {"filter": {"kind": 1}},
    "find_one": {"filter": {"_id": 1}},
    "find_one_and_update": {"filter": {"_id": 1}, "update": SET},
    "find_one_and_replace": {"filter": {"_id": 1}, "replacement": {"a": 1}},
    "find_one_and_delete": {"filter": {"_id": 1}},
    "count_documents": {"filter": {}},
    "estimated_document_count": {},
    "distinct": {"key": "kind"},
    "aggregate": {"pipeline": []},
    "aggregate_raw_batches": {"pipeline": []},
    "create_index": {"keys": "name"},
    "create_indexes": {"indexes": lambda names: [names["IndexModel"]("name")]},
    "drop_index": {"index_or_name": "x"},
    "drop_indexes": {},
    "list_indexes": {},
    "index_information": {},
    "options": {},
    "drop": {},
    "rename": {"new_name": "other"},
    "with_options": {},
    "bulk_write": {"requests": lambda names: [names["InsertOne"]({"_id": 50})]},
}
DATABASE: dict[str, dict[str, Any]] = {
    "command": {"command": "ping"},
    "aggregate": {"pipeline": [{"$documents": [{"a": 1}]}]},
    "create_collection": {"name": "other"},
    "drop_collection": {"name_or_collection": "things"},
    "get_collection": {"name": "things"},
    "list_collections": {},
    "list_collection_names": {},
    "with_options": {},
    "dereference": {"dbref": None},
    "cursor_command": {"command": "find", "value": "things"},
}
CLIENT: dict[str, dict[str, Any]] = {
    "get_database": {"name": "x"},
    "get_default_database": {"default": "x"},
    "list_databases": {},
    "list_database_names": {},
    "drop_database": {"name_or_database": "other"},
    "start_session": {},
    "bulk_write": {"models": lambda names: [names["InsertOne"]({"_id": 50}, namespace="differential.things")]},
}
FIND = {
    name: {}
    for name in inspect.signature(pymongo.collection.Cursor.__init__).parameters
    if name not in ("self", "collection")
}


def _cases() -> Iterator[Any]:
    for subject, owner, methods in (
        ("c", pymongo.collection.Collection, COLLECTION),
        ("db", pymongo.database.Database, DATABASE),
        ("client", pymongo.mongo_client.MongoClient, CLIENT),
    ):
        for method, required_arguments in methods.items():
            parameters = inspect.signature(getattr(owner, method)).parameters.values()
            for parameter in parameters:
                if parameter.name != "self" and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                    yield pytest.param(
                        subject, method, required_arguments, parameter.name, id=f"{subject}.{method}({parameter.name})"
                    )
    for name in FIND:
        yield pytest.param("c", "find", {}, name, id=f"c.find({name})")


def _make_call(subject: str, method: str, arguments: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    def call(names: dict[str, Any]) -> Any:
        required_arguments = {name: each(names) if callable(each) else each for name, each in arguments.items()}
        value = getattr(names[subject], method)(**required_arguments)
        return value.to_list() if hasattr(value, "to_list") else value

    return call


@pytest.mark.one_in(2)
# If PyMongo rejects the session of a cursor, the destructor of the cursor raises a second error,
# which the test ignores.
@pytest.mark.filterwarnings("ignore:.*_AgnosticCursorBase:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("subject", "method", "required_arguments", "parameter"), list(_cases()))
@on_the_simulation
def test_value_of_any_type_as_argument_has_outcome_of_pymongo(
    runner: CallRunner, subject: str, method: str, required_arguments: dict[str, Any], parameter: str
) -> None:
    failures = []
    for text, value in ODD_VALUES.items():
        call = f"{subject}.{method}({parameter}={text})"
        theirs, ours = runner.compare(_make_call(subject, method, {**required_arguments, parameter: value}))
        equal = explained(call, theirs, ours) is not None or _is_rejected(theirs, ours)
        if not equal or (ours.error is not None and not ours.text):
            failures.append((call, _text(theirs), _text(ours)))
    assert not failures


def _is_rejected(theirs: Outcome, ours: Outcome) -> bool:
    """Return True if gmongo rejects an argument that PyMongo sends or ignores."""
    return ours.error is not None and bool({"TypeError", "ValueError"} & set(ours.error.classes))


def _text(outcome: Outcome) -> str:
    return str(outcome[:3])[:300]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("subject", "method", "required_arguments", "parameter"), list(_cases()))
@on_the_simulation
def test_error_message_about_large_argument_is_short(
    runner: CallRunner, subject: str, method: str, required_arguments: dict[str, Any], parameter: str
) -> None:
    for value in (LARGE, {"x": LARGE}, [LARGE], LARGE.encode(), {LARGE: 1}, [{"x": [LARGE] * 3}]):
        outcome = runner.run_gmongo_call(_make_call(subject, method, {**required_arguments, parameter: value}))
        if outcome.error is not None and "OperationFailure" not in outcome.error.classes:
            assert len(outcome.text) < 1000, outcome.text[:200]

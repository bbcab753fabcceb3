"""Tests of unacknowledged writes (`w=0`).

The tests combine operations with options, kinds of session, server versions, and the level of the
write concern: client, database or collection.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pymongo
import pytest

import gmongo
from gmongo.errors import PyMongoError
from gmongo.testing import Deployment, DeploymentProcess
from tests.support.cases import rows

from .call_runner import DATABASE, CallRunner, Outcome
from .differences import check_outcomes

# Current versions of PyMongo do not support servers of version 4.2.
VERSIONS = ("4.4", pytest.param("5.0", marks=pytest.mark.long), "8.0")
HINT, SORT, LET, COLLATION = {"_id": 1}, {"_id": -1}, {"v": 1}, {"locale": "en"}
ARRAY_FILTERS = [{"i": "t"}]
OPTIONS: dict[str, Any] = {
    "hint": HINT,
    "sort": SORT,
    "let": LET,
    "collation": COLLATION,
    "array_filters": ARRAY_FILTERS,
    "comment": "why",
    "bypass_document_validation": True,
    "upsert": True,
}


# The options of the method `bulk_write`. The other options belong to the write models.
_BULK_OPTIONS = ("let", "comment", "bypass_document_validation", "session")


class Write(NamedTuple):
    """A write operation on the collection ``c``, as Python code, and the names of its options."""

    name: str
    call: str
    options: list[str]

    def run(self, collection: Any, names: dict[str, Any], options: dict[str, Any]) -> Any:
        """Run the operation with options.

        :param names: The objects that the code of the operation can use, keyed by name.
        """
        values = {
            "c": collection,
            "options": options,
            "call_options": {name: value for name, value in options.items() if name in _BULK_OPTIONS},
            "model_options": {name: value for name, value in options.items() if name not in _BULK_OPTIONS},
            "change": {"$set": {"tags.$[i]": "y"}} if "array_filters" in options else {"$set": {"name": "x"}},
        }
        return eval(self.call, {**names, **values})


WRITES = {row["name"]: Write(**row) for row in rows(__file__)}
ADMINISTRATION_CALLS = ("create_index", "drop_index", "drop", "rename", "aggregate")
COLLECTION_FACTORIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "client": lambda names: names["Client"](w=0)[DATABASE].things,
    "database": lambda names: names["client"].get_database(DATABASE, write_concern=names["WriteConcern"](w=0)).things,
    "collection": lambda names: names["c"].with_options(write_concern=names["WriteConcern"](w=0)),
}
SESSION_KINDS = ("none", "explicit", "transaction")


@pytest.fixture(scope="module", params=VERSIONS)
def versioned_runner(request: pytest.FixtureRequest) -> Iterator[CallRunner]:
    """Yield a call runner on a simulated server. Repeat the test for each server version."""
    with DeploymentProcess("--replica-set", "1", "--version", request.param) as deployment:
        runner = CallRunner(pymongo.uri_parser.parse_uri(deployment.uri)["nodelist"][0], request.param)
        try:
            yield runner
        finally:
            runner.close()


def _run_in_session(kind: str, names: dict[str, Any], target: Any, call: Callable[[dict[str, Any]], Any]) -> Any:
    if kind == "none":
        return call({})
    with target.database.client.start_session() as session:
        if kind == "explicit":
            return call({"session": session})
        with session.start_transaction():
            return call({"session": session})


def _call_in_session(write: Write, level: str, kind: str, options: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    def run_write(names: dict[str, Any]) -> Any:
        target = COLLECTION_FACTORIES[level](names)
        return _run_in_session(kind, names, target, lambda session: write.run(target, names, {**options, **session}))

    return run_write


def _is_rejected_by_both(name: str, theirs: Outcome, ours: Outcome) -> bool:
    return bool(theirs.error and ours.error) and not theirs.commands and not ours.commands


def _raises_before_send(name: str, theirs: Outcome, ours: Outcome) -> bool:
    """Return True if gmongo raises an error instead of sending a write that an old server rejects
    silently.
    """
    return theirs.error is None and "needs MongoDB" in ours.text and not ours.commands


def _sends_more_fields(name: str, theirs: Outcome, ours: Outcome) -> bool:
    """Return True if only gmongo sends `let` or `comment` in the commands of an unordered bulk
    write.
    """
    if "unordered" not in name or theirs[:2] != ours[:2]:
        return False
    fields = [{field[0] for command in each.commands for field in command[1]} for each in (theirs, ours)]
    return fields[1] - fields[0] in ({"let"}, {"comment"}) and theirs.documents == ours.documents


def _is_acknowledged(name: str, theirs: Outcome, ours: Outcome) -> bool:
    """Return True if gmongo sends the commands of an administration call as acknowledged commands."""
    return name in ADMINISTRATION_CALLS and all(command[3] for command in ours.commands)


EXPLANATIONS = (_is_rejected_by_both, _raises_before_send, _sends_more_fields, _is_acknowledged)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", WRITES)
def test_unacknowledged_write_has_outcome_of_pymongo_or_raises(versioned_runner: CallRunner, name: str) -> None:
    write = WRITES[name]
    cases = [(level, kind, None) for level in COLLECTION_FACTORIES for kind in SESSION_KINDS]
    cases += [("collection", kind, option) for kind in SESSION_KINDS for option in write.options]
    for level, kind, option in cases:
        options = {} if option is None else {option: OPTIONS[option]}
        theirs, ours = versioned_runner.compare(_call_in_session(write, level, kind, options))
        call = f"Client(w=0).bulk_write({option}=" if name == "client.bulk_write" else f"w0.{name}({option}="
        if not any(explains(name, theirs, ours) for explains in EXPLANATIONS):
            check_outcomes(call, theirs, ours)


def _run_and_catch_error(
    write: Write, client: Any, names: dict[str, Any], options: dict[str, Any], w: int
) -> Exception | None:
    client.drop_database(DATABASE)
    things = client[DATABASE].get_collection("things", write_concern=gmongo.WriteConcern(w=1))
    things.insert_one({"_id": 1, "tags": ["t"]})
    things.create_index("name")
    try:
        write.run(things.with_options(write_concern=gmongo.WriteConcern(w=w)), names, options)
    except PyMongoError as error:
        return error
    return None


@pytest.mark.one_in(3)
@pytest.mark.parametrize("version", ["4.2", "4.4", "5.0", "6.0", "7.0", "8.0"])
def test_option_that_old_server_rejects_raises_error_in_unacknowledged_write(version: str) -> None:
    names = {name: getattr(gmongo, name) for name in gmongo.__all__}
    rejected_count = 0
    with (
        Deployment.replica_set(1, version=version) as deployment,
        gmongo.MongoClient(deployment.uri) as client,
    ):
        for (name, write), option in itertools.product(WRITES.items(), (None, *OPTIONS)):
            if option is not None and option not in write.options:
                continue
            options = {} if option is None else {option: OPTIONS[option]}
            acknowledged_error, unacknowledged_error = (
                _run_and_catch_error(write, client, names, options, w) for w in (1, 0)
            )
            assert unacknowledged_error or not acknowledged_error, (name, option, acknowledged_error)
            rejected_count += acknowledged_error is not None
    assert (rejected_count > 0) == (version < "8.0")

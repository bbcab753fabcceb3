"""Calls of the methods in ``test_arguments.jsonl`` with values of many types for each parameter.

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

from tests.support.cases import rows

from .call_runner import CallRunner, Outcome
from .differences import explaining_differences
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

OWNERS: dict[str, Any] = {
    "c": pymongo.collection.Collection,
    "db": pymongo.database.Database,
    "client": pymongo.mongo_client.MongoClient,
}
# For each method: the subject, the name, and Python code of the arguments that a call needs besides
# the tested parameter.
METHODS = [(row["subject"], row["method"], row["arguments"]) for row in rows(__file__)]
FIND_PARAMETERS = [
    name
    for name in inspect.signature(pymongo.collection.Cursor.__init__).parameters
    if name not in ("self", "collection")
]


def _cases() -> Iterator[Any]:
    for subject, method, arguments in METHODS:
        for parameter in inspect.signature(getattr(OWNERS[subject], method)).parameters.values():
            if parameter.name != "self" and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                name = f"{subject}.{method}({parameter.name})"
                yield pytest.param(subject, method, arguments, parameter.name, id=name)
    for name in FIND_PARAMETERS:
        yield pytest.param("c", "find", "{}", name, id=f"c.find({name})")


def _make_call(
    subject: str, method: str, arguments: str, parameter: str, argument: Any
) -> Callable[[dict[str, Any]], Any]:
    def call(names: dict[str, Any]) -> Any:
        value = getattr(names[subject], method)(**{**eval(arguments, dict(names)), parameter: argument})
        return value.to_list() if hasattr(value, "to_list") else value

    return call


@pytest.mark.one_in(8)
# If PyMongo rejects the session of a cursor, the destructor of the cursor raises a second error,
# which the test ignores.
@pytest.mark.filterwarnings("ignore:.*_AgnosticCursorBase:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("subject", "method", "required_arguments", "parameter"), list(_cases()))
@on_the_simulation
def test_call_with_argument_of_any_type_has_outcome_of_pymongo_or_raises(
    runner: CallRunner, subject: str, method: str, required_arguments: str, parameter: str
) -> None:
    failures = []
    for text, value in ODD_VALUES.items():
        call = f"{subject}.{method}({parameter}={text})"
        theirs, ours = runner.compare(_make_call(subject, method, required_arguments, parameter, value))
        is_explained = explaining_differences(call, theirs, ours) is not None or _is_rejected(ours)
        if not is_explained or (ours.error is not None and not ours.text):
            failures.append((call, _text(theirs), _text(ours)))
    assert not failures


def _is_rejected(ours: Outcome) -> bool:
    """Return True if gmongo rejects the argument with a TypeError or ValueError."""
    return ours.error is not None and bool({"TypeError", "ValueError"} & set(ours.error.classes))


def _text(outcome: Outcome) -> str:
    return str(outcome[:3])[:300]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("subject", "method", "required_arguments", "parameter"), list(_cases()))
@on_the_simulation
def test_error_message_about_large_argument_is_short(
    runner: CallRunner, subject: str, method: str, required_arguments: str, parameter: str
) -> None:
    for value in (LARGE, {"x": LARGE}, [LARGE], LARGE.encode(), {LARGE: 1}, [{"x": [LARGE] * 3}]):
        outcome = runner.run_gmongo_call(_make_call(subject, method, required_arguments, parameter, value))
        if outcome.error is not None and "OperationFailure" not in outcome.error.classes:
            assert len(outcome.text) < 1000, outcome.text[:200]

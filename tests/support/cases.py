"""Read test cases from files.

The file with the cases of ``test_x.py`` is ``test_x.jsonl``. Each line is a case: a JSON object. The
field ``table`` is the name of the test, or a name that the test file passes to :func:`rows`. The
optional field ``id`` names the case in the output of pytest. Numbers and BSON values have the
notation of ``tests/simulation/answers/notation.py``. Four further notations exist:

- ``{"$name": "OSError"}`` is the object ``OSError`` of ``gmongo.errors`` or ``builtins``. A name with
  a colon, such as ``gevent:GreenletExit``, contains the module of the object.
- ``{"$call": ["AutoReconnect", "gone"]}`` is the result of ``AutoReconnect("gone")``.
- ``{"$tuple": [1, 2]}`` is a tuple.
- ``{"$bytes": "HTTP/1.1 200 OK"}`` is a bytes object, whose bytes are the code points of the text.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

import pytest

from gmongo import errors
from tests.simulation.answers.notation import from_json

Test = TypeVar("Test", bound=Callable[..., None])


def with_cases(test: Test) -> Test:
    """Run a test with each of its cases. Each field except ``table`` and ``id`` is an argument."""
    cases = rows(test.__code__.co_filename, test.__name__)
    ids = [case.pop("id", None) for case in cases]
    names = list(cases[0])
    mark = pytest.mark.parametrize(names, [[case[name] for name in names] for case in cases], ids=ids)
    decorated: Test = mark(test)
    return decorated


def rows(test_file: str, table: str | None = None) -> list[dict[str, Any]]:
    """Return the cases of a table, without the field ``table``.

    If `table` is None, return the cases that have no field ``table``.
    """
    table_rows = [row for row in all_rows(Path(test_file).with_suffix(".jsonl")) if row.get("table") == table]
    assert table_rows, f"the cases of {test_file} have no table {table}"
    return [{key: _convert(value) for key, value in row.items() if key != "table"} for row in table_rows]


@cache
def all_rows(path: Path) -> list[dict[str, Any]]:
    """Return the cases of all tables of a file, without conversion."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _convert(value: Any) -> Any:
    match value:
        case {"$name": name}:
            return _resolve_name(name)
        case {"$call": [name, *arguments]}:
            return _resolve_name(name)(*map(_convert, arguments))
        case {"$bytes": text}:
            return text.encode("latin-1")
        case {"$tuple": items}:
            return tuple(map(_convert, items))
        case dict():
            return from_json({name: _convert(each) for name, each in value.items()})
        case list():
            return [_convert(each) for each in value]
    return value


def _resolve_name(name: str) -> Any:
    return resolve_name(name) if ":" in name else vars(errors).get(name) or vars(builtins)[name]

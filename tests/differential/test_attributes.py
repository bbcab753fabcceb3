"""What PyMongo's exceptions and results may be asked for, gmongo's may be. Values are compared where they are raised
and returned, in the rows of `calls`.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import gridfs.errors
import pymongo.errors
import pymongo.results
import pytest

import gmongo.errors
import gmongo.gridfs.errors
import gmongo.results

PAIRS: list[tuple[ModuleType, ModuleType]] = [
    (pymongo.errors, gmongo.errors),
    (pymongo.results, gmongo.results),
    (gridfs.errors, gmongo.gridfs.errors),
]
CLASSES = [
    pytest.param(value, ours, id=name)
    for theirs, ours in PAIRS
    for name, value in vars(theirs).items()
    if inspect.isclass(value) and value.__module__ == theirs.__name__ and not name.startswith("_")
]


@pytest.mark.parametrize(("theirs", "module"), CLASSES)
def test_it_may_be_asked_for_all_that_pymongos_may(theirs: type[Any], module: ModuleType) -> None:
    ours = getattr(module, theirs.__name__)
    assert {name for name in dir(theirs) if not name.startswith("_")} <= set(dir(ours))
    bases = {base.__name__ for base in theirs.__mro__ if not base.__name__.startswith("_")}
    assert bases <= {base.__name__ for base in ours.__mro__}


def test_there_are_many() -> None:
    assert len(CLASSES) > 30

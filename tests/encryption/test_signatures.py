"""The names and parameters are PyMongo's."""

from __future__ import annotations

import inspect

import pymongo
import pymongo.encryption
import pymongo.encryption_options
import pytest

import gmongo.encryption
import gmongo.encryption_options
from tests.encryption import conftest  # noqa: F401  # skips without pymongocrypt

MODULES = [(pymongo.encryption, gmongo.encryption), (pymongo.encryption_options, gmongo.encryption_options)]
# PyMongo's module has no list of its names.
NAMES = [
    (theirs, ours, name)
    for theirs, ours in MODULES
    for name, value in vars(theirs).items()
    if inspect.isclass(value) and value.__module__.startswith("pymongo.") and "encryption" in value.__module__
    if not name.startswith(("_", "Async")) and (name != "AutoEncryptionOpts" or theirs is pymongo.encryption_options)
]


def parameters(function):
    return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]


@pytest.mark.skipif(pymongo.version_tuple < (4, 20), reason="before 4.20, PyMongo had previews that it has not now")
@pytest.mark.parametrize(("theirs", "ours", "name"), NAMES, ids=[name for *_, name in NAMES])
def test_class(theirs, ours, name):
    expected, found = getattr(theirs, name), getattr(ours, name)
    if issubclass(expected, str):
        assert {each.name: each.value for each in expected} == {each.name: each.value for each in found}
        return
    if issubclass(expected, dict):
        assert expected.__annotations__.keys() == found.__annotations__.keys()
        return
    theirs_first, own = parameters(found)[: len(parameters(expected))], parameters(found)[len(parameters(expected)) :]
    assert parameters(expected) == theirs_first
    assert [name for name, _kind, default in own if default is inspect.Parameter.empty] == []
    for member, value in vars(expected).items():
        if not member.startswith("_"):
            assert hasattr(found, member), member
            if callable(value):
                assert parameters(value) == parameters(getattr(found, member)), member


def test_there_are_enough_to_compare():
    assert len(NAMES) >= 11
    assert set(pymongo.encryption.__all__) <= set(gmongo.encryption.__all__)


@pytest.mark.parametrize(
    "options",
    [(), (1, 2, 3, 4, 5), (None, 4, 0, 7), (5,)],
)
def test_range_options(options):
    ours, theirs = gmongo.encryption_options.RangeOpts(*options), pymongo.encryption_options.RangeOpts(*options)
    assert ours.document == theirs.document
    assert list(map(type, ours.document.values())) == list(map(type, theirs.document.values()))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"substring": {"strMaxLength": 9, "strMinQueryLength": 2, "strMaxQueryLength": 3}, "case_sensitive": False},
        {"prefix": {"strMinQueryLength": 2, "strMaxQueryLength": 3}, "diacritic_sensitive": True},
        {"suffix": {"strMinQueryLength": 2, "strMaxQueryLength": 3}, "case_sensitive": True},
    ],
)
def test_string_options(options):
    ours, theirs = gmongo.encryption_options.StringOpts(**options), pymongo.encryption_options.StringOpts(**options)
    assert ours.document == theirs.document

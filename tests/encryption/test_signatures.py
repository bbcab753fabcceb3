"""The public names and parameters of the encryption modules equal the names and parameters of PyMongo."""

from __future__ import annotations

import inspect

import pymongo
import pymongo.encryption
import pymongo.encryption_options
import pytest

import gmongo.encryption
import gmongo.encryption_options
from tests.encryption import conftest  # noqa: F401  # The import skips the tests without pymongocrypt.

MODULES = [(pymongo.encryption, gmongo.encryption), (pymongo.encryption_options, gmongo.encryption_options)]
# ``__all__`` of PyMongo's modules is incomplete, so find the classes by their defining module.
NAMES = [
    (peer, ours, name)
    for peer, ours in MODULES
    for name, value in vars(peer).items()
    if inspect.isclass(value) and value.__module__.startswith("pymongo.") and "encryption" in value.__module__
    if not name.startswith(("_", "Async")) and (name != "AutoEncryptionOpts" or peer is pymongo.encryption_options)
]


def parameters(function):
    return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]


@pytest.mark.skipif(pymongo.version_tuple < (4, 20), reason="PyMongo before 4.20 has preview parameters")
@pytest.mark.parametrize(("peer", "gmongo_module", "name"), NAMES, ids=[name for *_, name in NAMES])
def test_class_has_names_and_parameters_of_pymongo(peer, gmongo_module, name):
    expected, found = getattr(peer, name), getattr(gmongo_module, name)
    if issubclass(expected, str):
        assert {each.name: each.value for each in expected} == {each.name: each.value for each in found}
        return
    if issubclass(expected, dict):
        assert expected.__annotations__.keys() == found.__annotations__.keys()
        return
    common, own = parameters(found)[: len(parameters(expected))], parameters(found)[len(parameters(expected)) :]
    assert parameters(expected) == common
    assert [name for name, _kind, default in own if default is inspect.Parameter.empty] == []
    for member, value in vars(expected).items():
        if not member.startswith("_"):
            assert hasattr(found, member), member
            if callable(value):
                assert parameters(value) == parameters(getattr(found, member)), member


def test_comparison_of_signatures_covers_all_public_encryption_classes():
    assert len(NAMES) >= 11
    assert set(pymongo.encryption.__all__) <= set(gmongo.encryption.__all__)

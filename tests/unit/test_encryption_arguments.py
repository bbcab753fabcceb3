"""The arguments of encryption: what a wrong one is told, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from bson import Binary, CodecOptions, Int64

pytest.importorskip("pymongocrypt")

from gmongo import MongoClient
from gmongo.encryption import Algorithm, ClientEncryption, RewrapManyDataKeyResult
from gmongo.encryption_options import RangeOpts, StringOpts
from gmongo.results import BulkWriteResult

KEYS = {"local": {"key": b"0" * 96}}
KEY = Binary(b"0" * 16, 4)


def encryption(**options: Any) -> ClientEncryption[Any]:
    client: MongoClient[Any] = MongoClient(connect=False)
    given = {"kms_providers": KEYS, "key_vault_namespace": "vault.keys", "key_vault_client": client}
    return ClientEncryption(**{**given, "codec_options": CodecOptions(), **options})


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"key_vault_client": 5}, TypeError, "key_vault_client must be a MongoClient, not 5"),
        ({"codec_options": 5}, TypeError, "codec_options must be an instance of CodecOptions, not 5"),
        ({"kms_providers": 5}, ValueError, "kms_providers must be a dict"),
    ],
)
def test_what_it_is_made_of(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        encryption(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda it: it.encrypt("x", Algorithm.UNINDEXED, key_id=5),
            "a key is named by a bson.binary.Binary with subtype 4 or a uuid.UUID, not 5",
        ),
        (
            lambda it: it.delete_key(Binary(b"0" * 16, 3)),
            "a key is named by a bson.binary.Binary with subtype 4 or a uuid.UUID, not b'0000000000000000'",
        ),
        (
            lambda it: it.encrypt("x", Algorithm.RANGE, key_id=KEY, range_opts=5),
            "range_opts must be an instance of RangeOpts, not 5",
        ),
        (
            lambda it: it.encrypt("x", Algorithm.INDEXED, key_id=KEY, string_opts=5),
            "string_opts must be an instance of StringOpts, not 5",
        ),
        (lambda it: it.decrypt(b"x"), "value to decrypt must be a bson.binary.Binary with subtype 6"),
        (lambda it: it.decrypt(KEY), "value to decrypt must be a bson.binary.Binary with subtype 6"),
        (
            lambda it: it.create_data_key("local", key_alt_names="x"),
            "key_alt_names must be a list of strings, not one string",
        ),
        (lambda it: it.get_key_by_alt_name(5), "key_alt_name must be a string, not 5"),
        (lambda it: it.add_key_alt_name(KEY, 5), "key_alt_name must be a string, not 5"),
        (lambda it: it.remove_key_alt_name(KEY, 5), "key_alt_name must be a string, not 5"),
    ],
)
def test_what_its_methods_refuse(call: Callable[[ClientEncryption[Any]], object], message: str) -> None:
    with encryption() as it, pytest.raises(TypeError) as caught:
        call(it)
    assert str(caught.value) == message


@pytest.mark.parametrize(("timeout_ms", "seconds"), [(None, None), (0, 0), (700, 0.7)])
def test_a_limit_of_time_is_that_of_the_key_vault(timeout_ms: float | None, seconds: float | None) -> None:
    with encryption(timeout_ms=timeout_ms) as it:
        assert it._keys._executor._timeout == seconds


def test_a_key_may_be_named_by_a_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    with encryption() as it:
        monkeypatch.setattr(it._explicit, "encrypt", lambda *values, **options: given.append((values, options)))
        for key in (KEY, UUID(bytes=bytes(KEY))):
            with pytest.raises(TypeError):  # nothing was encrypted
                it.encrypt("x", Algorithm.UNINDEXED, key_id=key)
    assert given[0] == given[1]
    assert given[0][0][2] == bytes(KEY)


OPTIONS: list[tuple[type[Any], dict[str, tuple[str, Any]]]] = [
    (
        RangeOpts,
        {
            "sparsity": ("sparsity", 2),
            "trim_factor": ("trimFactor", 3),
            "min": ("min", 4),
            "max": ("max", 5),
            "precision": ("precision", 6),
        },
    ),
    (
        StringOpts,
        {
            "substring": ("substring", {"strMaxLength": 1}),
            "prefix": ("prefix", {"strMinQueryLength": 2}),
            "suffix": ("suffix", {"strMinQueryLength": 3}),
            "case_sensitive": ("caseSensitive", False),
            "diacritic_sensitive": ("diacriticSensitive", True),
        },
    ),
]


@pytest.mark.parametrize(("kind", "fields"), OPTIONS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_options_of_an_algorithm(kind: type[Any], fields: dict[str, tuple[str, Any]]) -> None:
    assert kind().document == {}
    for name, (field, value) in fields.items():
        assert kind(**{name: value}).document == {field: value}
        assert getattr(kind(**{name: value}), name) == value
        assert getattr(kind(), name) is None
    every = kind(**{name: value for name, (_, value) in fields.items()})
    assert every.document == dict(fields.values())


def test_a_sparsity_is_sent_as_a_long_integer() -> None:
    assert type(RangeOpts(sparsity=2).document["sparsity"]) is Int64


@pytest.mark.parametrize("name", ["sparsity", "trim_factor", "precision"])
def test_a_number_of_a_range_is_one(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} must be "):
        RangeOpts(**{name: "x"})


def test_what_a_rewrap_shows() -> None:
    result = BulkWriteResult({}, False)
    assert repr(RewrapManyDataKeyResult(result)) == f"RewrapManyDataKeyResult({result!r})"
    assert RewrapManyDataKeyResult().bulk_write_result is None

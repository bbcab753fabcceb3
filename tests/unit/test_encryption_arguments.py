"""Arguments of explicit encryption: accepted values, and the errors that invalid values raise."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import bson
import pytest
from bson import Binary, CodecOptions, Int64

pytest.importorskip("pymongocrypt")

from gmongo import MongoClient
from gmongo.encryption import Algorithm, ClientEncryption
from gmongo.encryption_options import RangeOpts
from tests.support.cases import with_cases

KMS_PROVIDERS = {"local": {"key": b"0" * 96}}
KEY_ID = Binary(b"0" * 16, 4)


def client_encryption_with(**options: Any) -> ClientEncryption[Any]:
    client: MongoClient[Any] = MongoClient(connect=False)
    defaults = {"kms_providers": KMS_PROVIDERS, "key_vault_namespace": "vault.keys", "key_vault_client": client}
    return ClientEncryption(**{**defaults, "codec_options": CodecOptions(), **options})


@with_cases
def test_invalid_constructor_argument_raises(
    options: dict[str, Any], error_class: type[Exception], message: str
) -> None:
    with pytest.raises(error_class) as caught:
        client_encryption_with(**options)
    assert str(caught.value) == message


@with_cases
def test_invalid_argument_raises_type_error(
    method: str, arguments: list[Any], options: dict[str, Any], message: str
) -> None:
    with client_encryption_with() as client_encryption, pytest.raises(TypeError) as caught:
        getattr(client_encryption, method)(*arguments, **options)
    assert str(caught.value) == message


@pytest.mark.parametrize(("timeout_ms", "seconds"), [(None, None), (0, 0), (700, 0.7)])
def test_timeout_ms_sets_time_limit_of_key_vault_operations(timeout_ms: float | None, seconds: float | None) -> None:
    with client_encryption_with(timeout_ms=timeout_ms) as client_encryption:
        assert client_encryption._key_vault._executor._timeout == seconds


def test_encrypt_accepts_uuid_as_key_id(monkeypatch: pytest.MonkeyPatch) -> None:
    encrypt_calls: list[Any] = []
    with client_encryption_with() as client_encryption:
        monkeypatch.setattr(
            client_encryption._explicit, "encrypt", lambda *values, **options: encrypt_calls.append((values, options))
        )
        for key in (KEY_ID, UUID(bytes=bytes(KEY_ID))):
            with pytest.raises(TypeError):  # the mock of the encryption method returns no value
                client_encryption.encrypt("x", Algorithm.UNINDEXED, key_id=key)
        with pytest.raises(TypeError):
            client_encryption.encrypt_expression({"a": 1}, Algorithm.RANGE, None, "name", "range", 4, RangeOpts(min=5))
    options = dict.fromkeys(("query_type", "contention_factor", "range_opts", "string_opts"))
    assert encrypt_calls[0] == encrypt_calls[1]
    assert encrypt_calls[0] == ((bson.encode({"v": "x"}), Algorithm.UNINDEXED, bytes(KEY_ID), None), options)
    options.update(query_type="range", contention_factor=4, is_expression=True, range_opts=bson.encode({"min": 5}))
    assert encrypt_calls[2] == ((bson.encode({"v": {"a": 1}}), Algorithm.RANGE, None, "name"), options)


@with_cases
def test_algorithm_options_become_document_fields(options_class: type[Any], fields: dict[str, tuple[str, Any]]) -> None:
    assert options_class().document == {}
    for name, (field, value) in fields.items():
        assert options_class(**{name: value}).document == {field: value}
        assert getattr(options_class(**{name: value}), name) == value
        assert getattr(options_class(), name) is None
    all_options = options_class(**{name: value for name, (_, value) in fields.items()})
    assert all_options.document == dict(fields.values())


def test_sparsity_of_range_options_is_sent_as_int64() -> None:
    assert type(RangeOpts(sparsity=2).document["sparsity"]) is Int64


@pytest.mark.parametrize("name", ["sparsity", "trim_factor", "precision"])
def test_range_option_that_is_no_number_raises_type_error(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} must be "):
        RangeOpts(**{name: "x"})

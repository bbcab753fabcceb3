"""Prose test 3 of Client-Side Encryption: gmongo decrypts the official corpus of encrypted values,
and reproduces the deterministic ciphertexts.

The tests cover only the values for the local KMS provider.
"""

from __future__ import annotations

import pytest
from bson.json_util import CANONICAL_JSON_OPTIONS, loads

from gmongo.errors import EncryptionError
from tests.encryption.values import is_equal_bson
from tests.spec.specifications import path_of

ALGORITHMS = {"rand": "AEAD_AES_256_CBC_HMAC_SHA_512-Random", "det": "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"}


# Deprecated BSON types. The package `bson` converts values of these types to other types.
CONVERTED_TYPES = ("dbPointer", "symbol")


@pytest.fixture
def corpus(client):
    def read_file(name):
        return loads(path_of(f"{name}.json").read_text("utf-8"), json_options=CANONICAL_JSON_OPTIONS)

    client.keyvault.datakeys.insert_one(read_file("corpus-key-local"))
    plain, encrypted = read_file("corpus"), read_file("corpus-encrypted")
    return {
        name: (field, encrypted[name]["value"])
        for name, field in plain.items()
        if isinstance(field, dict) and field["kms"] == "local"
    }


def test_values_encrypted_by_another_driver_are_decrypted(encryption, corpus):
    allowed = [(name, *entry) for name, entry in corpus.items() if entry[0]["allowed"]]
    assert len(allowed) > 50
    for name, field, ciphertext in allowed:
        assert is_equal_bson(encryption.decrypt(ciphertext), field["value"]), name


def test_deterministic_ciphertext_equals_ciphertext_in_corpus(encryption, corpus):
    fields = [
        (name, *entry)
        for name, entry in corpus.items()
        if entry[0]["allowed"] and entry[0]["algo"] == "det" and entry[0]["type"] not in CONVERTED_TYPES
    ]
    assert len(fields) > 20
    for name, field, ciphertext in fields:
        assert encryption.encrypt(field["value"], ALGORITHMS["det"], key_alt_name="local") == ciphertext, name


def test_value_that_corpus_disallows_raises_encryption_error(encryption, corpus):
    fields = [(name, entry[0]) for name, entry in corpus.items() if not entry[0]["allowed"]]
    assert len(fields) > 10
    for name, field in fields:
        if field["method"] == "explicit":
            with pytest.raises(EncryptionError):
                encryption.encrypt(field["value"], ALGORITHMS[field["algo"]], key_alt_name="local")
        else:
            # No driver can encrypt this value, so the encrypted corpus contains the plain value.
            assert is_equal_bson(corpus[name][1], field["value"]), name

"""The official corpus: values of all types, encrypted by another driver. Of its data keys, those of the local provider
can be decrypted here; for the others one has to be at the services themselves.

Client Side Encryption, prose test 3.
"""

from __future__ import annotations

import bson
import pytest
from bson.json_util import CANONICAL_JSON_OPTIONS, loads

from gmongo.errors import EncryptionError
from tests.spec.specifications import path_of

ALGORITHMS = {
    "rand": "AEAD_AES_256_CBC_HMAC_SHA_512-Random",
    "det": "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic",
}


# `bson` reads these old types as others, and writes them as those.
TURNED = ("dbPointer", "symbol")


@pytest.fixture
def corpus(client):
    def read(name):
        return loads(path_of(f"{name}.json").read_text("utf-8"), json_options=CANONICAL_JSON_OPTIONS)

    client.keyvault.datakeys.insert_one(read("corpus-key-local"))
    plain, encrypted = read("corpus"), read("corpus-encrypted")
    return {
        name: (field, encrypted[name]["value"])
        for name, field in plain.items()
        if isinstance(field, dict) and field["kms"] == "local"
    }


def same(one, other):
    return bson.encode({"v": one}) == bson.encode({"v": other})


def test_what_another_driver_encrypted(encryption, corpus):
    allowed = [(name, *found) for name, found in corpus.items() if found[0]["allowed"]]
    assert len(allowed) > 50
    for name, field, ciphertext in allowed:
        assert same(encryption.decrypt(ciphertext), field["value"]), name


def test_what_is_encrypted_deterministically_is_the_same(encryption, corpus):
    fields = [
        (name, *found)
        for name, found in corpus.items()
        if found[0]["allowed"] and found[0]["algo"] == "det" and found[0]["type"] not in TURNED
    ]
    assert len(fields) > 20
    for name, field, ciphertext in fields:
        assert encryption.encrypt(field["value"], ALGORITHMS["det"], key_alt_name="local") == ciphertext, name


def test_what_is_not_allowed_is_refused(encryption, corpus):
    fields = [(name, found[0]) for name, found in corpus.items() if not found[0]["allowed"]]
    assert len(fields) > 10
    for name, field in fields:
        if field["method"] == "explicit":
            with pytest.raises(EncryptionError):
                encryption.encrypt(field["value"], ALGORITHMS[field["algo"]], key_alt_name="local")
        else:
            assert same(corpus[name][1], field["value"]), name  # the other driver has left it as it is

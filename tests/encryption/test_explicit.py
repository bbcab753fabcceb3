"""Explicit encryption: what is refused and how, beside PyMongo; what is closed; what is not shown."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import gevent
import pymongo.encryption
import pytest
from bson import Binary

import gmongo
from gmongo import MongoClient
from gmongo._encryption.explicit import opened
from gmongo._encryption.handle import Settings
from gmongo.encryption import Algorithm, ClientEncryption
from gmongo.encryption_options import AutoEncryptionOpts, RangeOpts
from gmongo.errors import (
    ConfigurationError,
    EncryptedCollectionError,
    EncryptionError,
    InvalidOperation,
    ServerSelectionTimeoutError,
)
from tests.encryption.conftest import LOCAL, OPTIONS, VAULT
from tests.support.recorder import Recorder

AT_RANDOM = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random
KEY = Binary.from_uuid(uuid.UUID(int=5))

# Calls that both drivers refuse in the same way. PyMongo's errors are those of the same names.
REFUSED = {
    "an unknown algorithm": lambda each: each.encrypt(1, "bad", KEY),
    "a key that is no UUID": lambda each: each.encrypt(1, "Unindexed", 5),
    "a key that is another binary": lambda each: each.encrypt(1, "Unindexed", Binary(b"x")),
    "no key": lambda each: each.encrypt(1, "Unindexed"),
    "two keys": lambda each: each.encrypt(1, "Unindexed", KEY, "name"),
    "a key that is not there": lambda each: each.encrypt(1, AT_RANDOM.value, KEY),
    "a value that BSON does not have": lambda each: each.encrypt(object(), "Unindexed", KEY),
    "a contention factor that is no number": lambda each: each.encrypt(1, "Indexed", KEY, contention_factor="x"),
    "no contention factor": lambda each: each.encrypt(1, "Indexed", KEY),
    "a query type that is no string": lambda each: each.encrypt(1, "Indexed", KEY, query_type=5),
    "a query type for a plain algorithm": lambda each: each.encrypt(1, AT_RANDOM.value, KEY, query_type="equality"),
    "no ciphertext": lambda each: each.decrypt(5),
    "a ciphertext that is none": lambda each: each.decrypt(Binary(b"x", 6)),
    "an empty ciphertext": lambda each: each.decrypt(Binary(b"", 6)),
    "another binary": lambda each: each.decrypt(Binary(b"x", 5)),
    "an unknown provider": lambda each: each.create_data_key("aws"),
    "a provider that is no string": lambda each: each.create_data_key(5),
    "key material that is too short": lambda each: each.create_data_key("local", key_material=b"1"),
    "an alternative name that is no string": lambda each: each.create_data_key("local", key_alt_names=[5]),
    "a master key without provider": lambda each: each.rewrap_many_data_key({}, None, {}),
    "rewrapping to an unknown provider": lambda each: each.rewrap_many_data_key({}, "bad"),
    "a filter that is none": lambda each: each.rewrap_many_data_key(5),
    "no database": lambda each: each.create_encrypted_collection(5, "x", {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_pymongo_refuses(encryption, theirs, name):
    errors = []
    for each in (encryption, theirs.encryption):
        with pytest.raises((Exception,)) as caught:
            REFUSED[name](each)
        cause = getattr(caught.value, "cause", None)
        errors.append((type(caught.value).__name__, type(cause).__name__))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (({"local": {}}, VAULT), ValueError, "must contain 'key'"),
        (({}, VAULT), ValueError, "at least one KMS provider"),
        ((5, VAULT), ValueError, "kms_providers must be a dict"),
        (({"local": 5}, VAULT), ValueError, "must be a dict"),
        (({"local": {"key": b"1"}}, VAULT), EncryptionError, "96 bytes"),
        (({"local": {"key": "bad"}}, VAULT), EncryptionError, "base64"),
        (({"x": {}}, VAULT), EncryptionError, "unrecognized"),
        (({"aws:n": {}}, VAULT), EncryptionError, "On-demand credentials are not supported"),
        (({"kmip": {"endpoint": 5}}, VAULT), TypeError, "endpoint"),
        ((LOCAL, "nodot"), ConfigurationError, "key_vault_namespace"),
        ((LOCAL, ".b"), ConfigurationError, "key_vault_namespace"),
        ((LOCAL, "a."), ConfigurationError, "key_vault_namespace"),
        ((LOCAL, 5), TypeError, "key_vault_namespace"),
    ],
)
def test_wrong_options(client, arguments, error, message):
    with pytest.raises(error, match=message):
        ClientEncryption(*arguments, client, OPTIONS)


def test_wrong_objects(client):
    with pytest.raises(TypeError, match="key_vault_client must be a MongoClient"):
        ClientEncryption(LOCAL, VAULT, 5, OPTIONS)
    with pytest.raises(TypeError, match="codec_options must be"):
        ClientEncryption(LOCAL, VAULT, client, 5)
    with pytest.raises(TypeError, match="kms_connect_callback must be callable"):
        ClientEncryption(LOCAL, VAULT, client, OPTIONS, kms_connect_callback=5)
    for wrong, error in ((-1, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="key_expiration_ms"):
            ClientEncryption(LOCAL, VAULT, client, OPTIONS, key_expiration_ms=wrong)


def test_closed(encryption):
    encryption.close()
    encryption.close()
    for call in (
        lambda: encryption.encrypt(1, AT_RANDOM, KEY),
        lambda: encryption.decrypt(Binary(b"x", 6)),
        encryption.get_keys,
        lambda: encryption.create_data_key("local"),
        lambda: encryption.get_key(KEY),
        lambda: encryption.create_encrypted_collection(encryption._keys.database, "c", {"fields": []}, "local"),
        lambda: encryption.encrypt_expression({}, AT_RANDOM, KEY),
        lambda: encryption.rewrap_many_data_key({}),
        lambda: encryption.delete_key(KEY),
        lambda: encryption.add_key_alt_name(KEY, "x"),
        lambda: encryption.remove_key_alt_name(KEY, "x"),
        lambda: encryption.get_key_by_alt_name("x"),
    ):
        with pytest.raises(InvalidOperation, match="Cannot use closed ClientEncryption"):
            call()


def test_keys_are_written_with_a_majority(deployment, encryption):
    recorder = Recorder()
    with (
        MongoClient(deployment.uri, w=1, event_listeners=[recorder]) as client,
        ClientEncryption(LOCAL, VAULT, client, OPTIONS) as encryption,
    ):
        key = encryption.create_data_key("local")
        encryption.add_key_alt_name(key, "name")
        encryption.rewrap_many_data_key({})
        encryption.delete_key(key)
    written = [name for name in recorder.commands if name in ("insert", "update", "findAndModify", "delete")]
    assert set(written) == {"insert", "update", "findAndModify", "delete"}
    assert all(command["writeConcern"] == {"w": "majority"} for name in set(written) for command in recorder.sent(name))


def test_a_library_that_was_closed_is_not_opened_again():
    handle = opened(Settings(LOCAL))
    handle.crypt()
    handle.close()
    with pytest.raises(InvalidOperation, match="closed"):
        handle.crypt()


@pytest.mark.parametrize("error", [AttributeError("no such symbol"), OSError("no such file"), RuntimeError("broken")])
def test_a_library_that_cannot_be_loaded(monkeypatch, error):
    def version(_length):
        raise error

    monkeypatch.setattr("gmongo._encryption.library.lib", SimpleNamespace(mongocrypt_version=version))
    with pytest.raises(ConfigurationError, match=f"needs libmongocrypt: {error}"):
        AutoEncryptionOpts(LOCAL, VAULT)


def test_a_key_vault_that_cannot_be_reached():
    client: MongoClient = MongoClient("127.0.0.1:1", serverSelectionTimeoutMS=30)
    with client, ClientEncryption(LOCAL, VAULT, client, OPTIONS) as encryption:
        with pytest.raises(EncryptionError) as caught:
            encryption.encrypt(1, AT_RANDOM, KEY)
        assert isinstance(caught.value.cause, ServerSelectionTimeoutError)
        with pytest.raises(EncryptionError):
            encryption.create_data_key("local")


def test_a_time_limit(client, encryption):
    key = encryption.create_data_key("local")
    client.admin.command(
        {"configureFailPoint": "failCommand", "mode": {"times": 1}},
        data={"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 2000},
    )
    with gmongo.timeout(0.2), pytest.raises(EncryptionError) as caught:
        encryption.encrypt(1, AT_RANDOM, key)
    assert caught.value.timeout
    gevent.sleep(0)


def test_material_of_ones_own(encryption, theirs):
    """The same material gives the same ciphertext, but for the key's name in it."""
    keys = [encryption.create_data_key("local", key_material=bytes(range(96))) for _ in range(2)]
    deterministic = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic
    assert encryption.encrypt("x", deterministic, keys[0]) == theirs.encryption.encrypt("x", deterministic, keys[0])


def test_encrypted_collections(client, encryption):
    fields = {"fields": [{"path": "a", "bsonType": "string", "keyId": None}, {"path": "b", "keyId": KEY}]}
    collection, made = encryption.create_encrypted_collection(client.shop, "secrets", fields, "local")
    assert fields["fields"][0]["keyId"] is None
    assert encryption.get_key(made["fields"][0]["keyId"]) is not None
    assert made["fields"][1]["keyId"] == KEY
    names = {"secrets", "enxcol_.secrets.esc", "enxcol_.secrets.ecoc"}
    assert names <= set(client.shop.list_collection_names())
    assert "__safeContent___1" in collection.index_information()
    client.shop.drop_collection("secrets", encrypted_fields=made)
    assert not names & set(client.shop.list_collection_names())
    with pytest.raises(EncryptedCollectionError) as caught:
        encryption.create_encrypted_collection(client.shop, "secrets", fields, "nonsense")
    assert caught.value.encrypted_fields == fields
    with pytest.raises(TypeError, match="encrypted_fields must be a mapping"):
        encryption.create_encrypted_collection(client.shop, "secrets", 5)


def test_no_secret_is_shown(client, caplog):
    caplog.set_level("DEBUG")
    master = b"very secret" + bytes(85)
    with ClientEncryption({"local": {"key": master}}, VAULT, client, OPTIONS) as encryption:
        key = encryption.create_data_key("local")
        secret = encryption.encrypt("plain text", AT_RANDOM, key)
        encryption.decrypt(secret)
        wrong = Binary(secret[:-1] + bytes([secret[-1] ^ 1]), 6)
        with pytest.raises(EncryptionError) as caught:
            encryption.decrypt(wrong)
        machine = encryption._explicit._machine
        shown = "".join(
            map(
                repr, (encryption, encryption._explicit, machine, machine.handle, machine.handle.settings, caught.value)
            )
        )
        for text in (shown, str(caught.value), caplog.text):
            assert "very secret" not in text
            assert "plain text" not in text


def test_a_damaged_ciphertext_is_never_decrypted(encryption):
    key = encryption.create_data_key("local")
    secret = encryption.encrypt("secret", AT_RANDOM, key)
    for position in range(17, len(secret)):
        damaged = bytearray(secret)
        damaged[position] ^= 1
        try:
            found = encryption.decrypt(Binary(bytes(damaged), 6))
        except EncryptionError:
            continue
        pytest.fail(f"byte {position} may be changed: {found!r}")


def test_options_of_a_range_are_checked():
    with pytest.raises(TypeError, match="sparsity"):
        RangeOpts(sparsity="x")
    assert pymongo.encryption.Algorithm.RANGE == Algorithm.RANGE


def test_closing_forgets_the_keys_for_what_still_uses_them_too(client):
    encryption = ClientEncryption(LOCAL, VAULT, client, OPTIONS)
    handle = encryption._explicit._machine.handle
    handle.crypt()
    encryption.close()
    encryption.close()
    with pytest.raises(InvalidOperation, match="was closed"):
        handle.crypt()

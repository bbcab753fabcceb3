"""Tests of `ClientEncryption`: errors, ciphertexts, commands to the key vault, and encrypted
collections.
"""

from __future__ import annotations

import uuid

import gevent
import pytest
from bson import Binary

import gmongo
from gmongo import MongoClient
from gmongo.encryption import Algorithm, ClientEncryption
from gmongo.errors import EncryptedCollectionError, EncryptionError, InvalidOperation, ServerSelectionTimeoutError
from tests.encryption.conftest import CODEC_OPTIONS, KMS_PROVIDERS, VAULT
from tests.support.cases import with_cases
from tests.support.recorder import Recorder

RANDOMIZED = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random
KEY_ID = Binary.from_uuid(uuid.UUID(int=5))


@with_cases
def test_invalid_call_raises_error_class_of_pymongo(encryption, peer, method, arguments, options):
    errors = []
    for each in (encryption, peer.encryption):
        with pytest.raises((Exception,)) as caught:
            getattr(each, method)(*arguments, **options)
        cause = getattr(caught.value, "cause", None)
        errors.append((type(caught.value).__name__, type(cause).__name__))
    assert errors[0] == errors[1]


@with_cases
def test_invalid_client_encryption_options_raise_error_with_reason(client, arguments, error_class, message):
    with pytest.raises(error_class, match=rf"{message}(?!\w)"):
        ClientEncryption(*arguments, client, CODEC_OPTIONS)


def test_invalid_argument_of_client_encryption_raises_error_with_name(client):
    with pytest.raises(TypeError, match="kms_connect_callback must be callable"):
        ClientEncryption(KMS_PROVIDERS, VAULT, client, CODEC_OPTIONS, kms_connect_callback=5)
    for value, error in ((-1, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="key_expiration_ms"):
            ClientEncryption(KMS_PROVIDERS, VAULT, client, CODEC_OPTIONS, key_expiration_ms=value)


def test_closed_client_encryption_raises_invalid_operation(encryption):
    explicit = encryption._explicit
    encryption.close()
    encryption.close()
    with pytest.raises(InvalidOperation, match="was closed"):
        explicit.create_data_key("local", None, None, None)
    for call in (
        lambda: encryption.encrypt(1, RANDOMIZED, KEY_ID),
        lambda: encryption.decrypt(Binary(b"x", 6)),
        encryption.get_keys,
        lambda: encryption.create_data_key("local"),
        lambda: encryption.get_key(KEY_ID),
        lambda: encryption.create_encrypted_collection(encryption._key_vault.database, "c", {"fields": []}, "local"),
        lambda: encryption.encrypt_expression({}, RANDOMIZED, KEY_ID),
        lambda: encryption.rewrap_many_data_key({}),
        lambda: encryption.delete_key(KEY_ID),
        lambda: encryption.add_key_alt_name(KEY_ID, "x"),
        lambda: encryption.remove_key_alt_name(KEY_ID, "x"),
        lambda: encryption.get_key_by_alt_name("x"),
    ):
        with pytest.raises(InvalidOperation, match="Cannot use closed ClientEncryption"):
            call()


def test_key_vault_is_written_with_write_concern_majority(deployment, encryption):
    recorder = Recorder()
    with (
        MongoClient(deployment.uri, w=1, event_listeners=[recorder]) as client,
        ClientEncryption(KMS_PROVIDERS, VAULT, client, CODEC_OPTIONS) as encryption,
    ):
        key, _other_key = (encryption.create_data_key("local") for _ in range(2))
        encryption.add_key_alt_name(key, "name")
        result = encryption.rewrap_many_data_key({})
        assert result.bulk_write_result.modified_count == 2
        assert repr(result) == f"RewrapManyDataKeyResult({result.bulk_write_result!r})"
        assert encryption.rewrap_many_data_key({"_id": "missing"}).bulk_write_result is None
        encryption.delete_key(key)
    write_names = [name for name in recorder.commands if name in ("insert", "update", "findAndModify", "delete")]
    assert set(write_names) == {"insert", "update", "findAndModify", "delete"}
    assert all(
        command["writeConcern"] == {"w": "majority"}
        for name in set(write_names)
        for command in recorder.sent_commands(name)
    )


def test_unreachable_key_vault_raises_encryption_error():
    client: MongoClient = MongoClient("127.0.0.1:1", serverSelectionTimeoutMS=30)
    with client, ClientEncryption(KMS_PROVIDERS, VAULT, client, CODEC_OPTIONS) as encryption:
        with pytest.raises(EncryptionError) as caught:
            encryption.encrypt(1, RANDOMIZED, KEY_ID)
        assert isinstance(caught.value.cause, ServerSelectionTimeoutError)
        with pytest.raises(EncryptionError):
            encryption.create_data_key("local")


def test_timeout_of_key_query_raises_encryption_error_with_timeout(client, encryption):
    key = encryption.create_data_key("local")
    client.admin.command(
        {"configureFailPoint": "failCommand", "mode": {"times": 1}},
        data={"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 2000},
    )
    with gmongo.timeout(0.2), pytest.raises(EncryptionError) as caught:
        encryption.encrypt(1, RANDOMIZED, key)
    assert caught.value.timeout
    gevent.sleep(0)


def test_ciphertext_with_custom_key_material_equals_ciphertext_of_pymongo(encryption, peer):
    keys = [encryption.create_data_key("local", key_material=bytes(range(96))) for _ in range(2)]
    deterministic = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic
    assert encryption.encrypt("x", deterministic, keys[0]) == peer.encryption.encrypt("x", deterministic, keys[0])


def test_encrypted_collection_is_created_with_keys_and_dropped(client, encryption):
    fields = {"fields": [{"path": "a", "bsonType": "string", "keyId": None}, {"path": "b", "keyId": KEY_ID}]}
    collection, new_fields = encryption.create_encrypted_collection(client.shop, "secrets", fields, "local")
    assert fields["fields"][0]["keyId"] is None
    assert encryption.get_key(new_fields["fields"][0]["keyId"]) is not None
    assert new_fields["fields"][1]["keyId"] == KEY_ID
    names = {"secrets", "enxcol_.secrets.esc", "enxcol_.secrets.ecoc"}
    assert names <= set(client.shop.list_collection_names())
    assert "__safeContent___1" in collection.index_information()
    with pytest.raises(EncryptedCollectionError) as caught:
        encryption.create_encrypted_collection(client.shop, "secrets", fields, "local")
    assert isinstance(caught.value.cause, gmongo.errors.OperationFailure)
    client.shop.drop_collection("secrets", encrypted_fields=new_fields)
    assert not names & set(client.shop.list_collection_names())
    with pytest.raises(EncryptedCollectionError) as caught:
        encryption.create_encrypted_collection(client.shop, "secrets", fields, "nonsense")
    assert caught.value.encrypted_fields == fields
    with pytest.raises(TypeError, match="encrypted_fields must be a mapping"):
        encryption.create_encrypted_collection(client.shop, "secrets", 5)


def test_decryption_of_ciphertext_with_one_changed_bit_raises_error(encryption):
    key = encryption.create_data_key("local")
    secret = encryption.encrypt("secret", RANDOMIZED, key)
    for position in range(17, len(secret)):
        damaged = bytearray(secret)
        damaged[position] ^= 1
        try:
            value = encryption.decrypt(Binary(bytes(damaged), 6))
        except EncryptionError:
            continue
        pytest.fail(f"the decryption accepts a change of byte {position}: {value!r}")

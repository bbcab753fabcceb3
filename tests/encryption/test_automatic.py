"""A client with `AutoEncryptionOpts` encrypts commands and decrypts replies.

A simulated mongocryptd marks the values to encrypt.
"""

from __future__ import annotations

import contextlib
import gc
import os
import weakref

import bson
import gevent
import gevent.socket
import pymongo
import pymongo.encryption_options
import pytest
from bson.raw_bson import RawBSONDocument

import gmongo
from gmongo import DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateOne
from gmongo.encryption import Algorithm
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import (
    ConfigurationError,
    EncryptionError,
    InvalidOperation,
    ServerSelectionTimeoutError,
)
from tests.encryption.conftest import KMS_PROVIDERS, VAULT
from tests.support.cases import with_cases
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

DETERMINISTIC = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic
RANDOMIZED = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random
PEOPLE_NAMESPACE = "shop.people"


@pytest.fixture
def key(client, encryption):
    client.shop.people.drop()
    return encryption.create_data_key("local", key_alt_names=["name"])


@pytest.fixture
def schema(key):
    def rule(algorithm):
        return {"encrypt": {"keyId": [key], "bsonType": "string", "algorithm": algorithm.value}}

    return {
        "bsonType": "object",
        "properties": {
            "ssn": rule(DETERMINISTIC),
            "secret": rule(RANDOMIZED),
            "address": {"bsonType": "object", "properties": {"street": rule(DETERMINISTIC)}},
        },
    }


@pytest.fixture
def connect(deployment):
    clients = []

    def create_client(uri=None, options=None, **encryption_options):
        client = MongoClient(
            uri or deployment.uri,
            auto_encryption_opts=AutoEncryptionOpts(KMS_PROVIDERS, VAULT, **encryption_options),
            **(options or {}),
        )
        clients.append(client)
        return client

    yield create_client
    for each in clients:
        each.close()


@pytest.fixture
def auto_client(connect, schema, mongocryptd, recorder):
    client = connect(
        None,
        {"event_listeners": [recorder]},
        schema_map={PEOPLE_NAMESPACE: schema},
        mongocryptd_uri=mongocryptd.uri,
        mongocryptd_bypass_spawn=True,
    )
    client.recorder = recorder
    return client


ANN_DOCUMENT = {
    "_id": 1,
    "name": "ann",
    "ssn": "457-55-5462",
    "secret": "gold",
    "address": {"street": "Main"},
}


def is_encrypted(value):
    return isinstance(value, bson.Binary) and value.subtype == 6


def test_every_operation_encrypts_arguments_and_decrypts_results(auto_client, client, peer):
    people, plain_people = auto_client.shop.people, client.shop.people
    people.insert_one(dict(ANN_DOCUMENT))
    raw = plain_people.find_one({"_id": 1})
    assert is_encrypted(raw["ssn"]) and is_encrypted(raw["secret"]) and is_encrypted(raw["address"]["street"])
    assert raw["name"] == "ann"
    assert peer.encryption.decrypt(raw["ssn"]) == "457-55-5462"

    assert people.find_one({"ssn": "457-55-5462"}) == ANN_DOCUMENT
    assert people.find_one({"ssn": {"$in": ["457-55-5462", "other"]}}) == ANN_DOCUMENT
    assert people.find_one({"$or": [{"address.street": "Main"}, {"name": "unknown"}]}) == ANN_DOCUMENT
    assert people.find_one({"ssn": "other"}) is None
    assert list(people.aggregate([{"$match": {"ssn": "457-55-5462"}}])) == [ANN_DOCUMENT]
    assert people.count_documents({"ssn": "457-55-5462"}) == 1
    assert people.distinct("ssn") == ["457-55-5462"]

    assert people.update_one({"ssn": "457-55-5462"}, {"$set": {"ssn": "1", "age": 7}}).modified_count == 1
    assert is_encrypted(plain_people.find_one({"_id": 1})["ssn"])
    assert people.find_one_and_update({"ssn": "1"}, {"$set": {"secret": "silver"}})["secret"] == "gold"
    assert people.find_one_and_replace({"ssn": "1"}, {"ssn": "2"}, return_document=True) == {
        "_id": 1,
        "ssn": "2",
    }
    assert people.replace_one({"ssn": "2"}, {"ssn": "3", "secret": "x"}).modified_count == 1
    assert people.find_one_and_delete({"ssn": "3"}) == {"_id": 1, "ssn": "3", "secret": "x"}

    people.insert_many([{"_id": number, "ssn": str(number)} for number in range(5)])
    result = people.bulk_write(
        [
            InsertOne({"_id": 9, "ssn": "9"}),
            UpdateOne({"ssn": "1"}, {"$set": {"ssn": "one"}}),
            ReplaceOne({"ssn": "2"}, {"ssn": "two"}),
            DeleteOne({"ssn": "3"}),
        ]
    )
    assert (result.inserted_count, result.modified_count, result.deleted_count) == (1, 2, 1)
    assert [each["ssn"] for each in people.find().sort("_id", 1)] == ["0", "one", "two", "4", "9"]
    assert all(is_encrypted(each["ssn"]) for each in plain_people.find())
    assert people.delete_many({"ssn": {"$in": ["0", "4"]}}).deleted_count == 2
    assert people.update_many({"ssn": "9"}, {"$set": {"secret": "x"}}).modified_count == 1


def test_cursor_and_raw_batches_are_decrypted(auto_client):
    people = auto_client.shop.people
    people.insert_many([{"_id": number, "ssn": str(number)} for number in range(10)])
    assert [each["ssn"] for each in people.find(batch_size=3).sort("_id", 1)] == [str(n) for n in range(10)]
    batches = b"".join(people.find_raw_batches(batch_size=3).sort("_id", 1))
    assert [each["ssn"] for each in bson.decode_all(batches)] == [str(number) for number in range(10)]
    raw = people.with_options(bson.CodecOptions(document_class=RawBSONDocument))
    assert raw.find_one({"_id": 1})["ssn"] == "1"


def test_unencryptable_command_raises_error_and_is_not_sent(auto_client):
    people = auto_client.shop.people
    auto_client.recorder.clear()
    for call, message in (
        (lambda: people.find_one({"secret": "gold"}), "randomized"),
        (lambda: people.find_one({"ssn": {"$gt": "1"}}), "Invalid match expression operator"),
        (lambda: people.update_one({}, {"$push": {"ssn": "x"}}), "not allowed on encrypted values"),
        (
            lambda: auto_client.shop.command("killOp", 1),
            "command not supported for auto encryption: killOp",
        ),
        (
            lambda: auto_client.shop.aggregate([{"$documents": []}]),
            "non-collection command not supported",
        ),
    ):
        with pytest.raises(EncryptionError, match=rf"{message}(?!\w)"):
            call()
    assert auto_client.recorder.commands == []


def test_mongocryptd_is_spawned_at_first_use_and_after_failed_command(connect, schema, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr("gmongo._encryption.automatic._SELECTION_TIMEOUT_MS", 50)
    program, log = tmp_path / "program", tmp_path / "log"
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
    program.chmod(0o755)
    disconnected = connect(
        schema_map={PEOPLE_NAMESPACE: schema},
        mongocryptd_uri="mongodb://127.0.0.1:1/",
        mongocryptd_spawn_path=str(program),
        mongocryptd_spawn_args=["--port=1"],
    )
    assert not log.exists()
    # The client spawns mongocryptd at the first use, and again if the server selection for a command
    # to mongocryptd times out.
    for line_count in (2, 3):
        with pytest.raises(EncryptionError):
            disconnected.shop.people.insert_one(dict(ANN_DOCUMENT))
        eventually(lambda count=line_count: log.exists() and len(log.read_text().splitlines()) == count)
    assert set(log.read_text().splitlines()) == {"--port=1 --idleShutdownTimeoutSecs=60"}
    assert "cannot be started" not in caplog.text


def test_missing_mongocryptd_program_is_logged(connect, schema, monkeypatch, caplog):
    monkeypatch.setattr("gmongo._encryption.automatic._SELECTION_TIMEOUT_MS", 50)
    options = {
        "mongocryptd_uri": "mongodb://127.0.0.1:1/",
        "mongocryptd_spawn_path": "no-such-program",
    }
    disconnected = connect(schema_map={PEOPLE_NAMESPACE: schema}, **options)
    with pytest.raises(EncryptionError) as caught:
        disconnected.shop.people.insert_one(dict(ANN_DOCUMENT))
    assert isinstance(caught.value.cause, ServerSelectionTimeoutError)
    assert "PATH contains no 'no-such-program' (mongocryptd_spawn_path)" in caplog.text


def test_schema_of_the_server_is_used_and_cached(client, connect, schema, mongocryptd, recorder):
    client.shop.create_collection("people", validator={"$jsonSchema": schema})
    auto_client = connect(
        None,
        {"event_listeners": [recorder]},
        mongocryptd_uri=mongocryptd.uri,
        mongocryptd_bypass_spawn=True,
    )
    auto_client.shop.people.insert_one({"_id": 1, "ssn": "1"})
    auto_client.shop.people.insert_one({"_id": 2, "ssn": "2"})
    assert is_encrypted(client.shop.people.find_one({"_id": 1})["ssn"])
    # The client reads the schema and the key only for the first insert, and caches both.
    assert len(recorder.sent_commands("listCollections")) == 1
    assert len([each for each in recorder.sent_commands("find") if each["find"] == "datakeys"]) == 1


def test_schema_with_alternative_key_name_encrypts_values(connect, client, mongocryptd, key):
    encrypt = {"keyId": "/altname", "bsonType": "string", "algorithm": RANDOMIZED.value}
    auto_client = connect(
        schema_map={PEOPLE_NAMESPACE: {"bsonType": "object", "properties": {"ssn": {"encrypt": encrypt}}}},
        mongocryptd_uri=mongocryptd.uri,
        mongocryptd_bypass_spawn=True,
    )
    auto_client.shop.people.insert_one({"_id": 1, "ssn": "1", "altname": "name"})
    assert is_encrypted(client.shop.people.find_one()["ssn"])
    assert auto_client.shop.people.find_one()["ssn"] == "1"
    with pytest.raises(EncryptionError, match="not all keys requested were satisfied"):
        auto_client.shop.people.insert_one({"ssn": "1", "altname": "no such name"})


def test_transaction_encrypts_writes_and_excludes_queries_for_keys(auto_client, client):
    with auto_client.start_session() as session, session.start_transaction():
        auto_client.shop.people.insert_one(dict(ANN_DOCUMENT), session=session)
        assert auto_client.shop.people.find_one({"ssn": "457-55-5462"}, session=session) == ANN_DOCUMENT
    assert is_encrypted(client.shop.people.find_one()["ssn"])
    for command in auto_client.recorder.sent_commands("find"):
        assert ("txnNumber" in command) == (command["find"] == "people")
    with auto_client.start_session() as session, session.bind(), session.start_transaction():
        assert auto_client.shop.people.find_one({"ssn": "457-55-5462"}) == ANN_DOCUMENT


def test_retry_sends_encrypted_documents_of_first_attempt(auto_client, client):
    client.admin.command(
        {"configureFailPoint": "failCommand", "mode": {"times": 1}},
        data={"failCommands": ["insert"], "errorCode": 91, "errorLabels": ["RetryableWriteError"]},
    )
    auto_client.shop.people.insert_one(dict(ANN_DOCUMENT))
    first, second = auto_client.recorder.sent_commands("insert")
    assert first["documents"] == second["documents"]
    assert first["txnNumber"] == second["txnNumber"]


def test_unacknowledged_write_is_encrypted(auto_client, client):
    people = auto_client.shop.people.with_options(write_concern=gmongo.WriteConcern(w=0))
    people.insert_one(dict(ANN_DOCUMENT))
    assert is_encrypted(eventually(client.shop.people.find_one)["ssn"])


@pytest.mark.parametrize("option", ["bypass_auto_encryption", "bypass_query_analysis"])
def test_bypass_option_disables_encryption_but_not_decryption(connect, client, encryption, key, option):
    auto_client = connect(**{option: True}, mongocryptd_uri="mongodb://127.0.0.1:1/")
    secret = encryption.encrypt("secret", RANDOMIZED, key)
    auto_client.shop.people.insert_one({"_id": 1, "ssn": secret})
    assert client.shop.people.find_one() == {"_id": 1, "ssn": secret}
    assert auto_client.shop.people.find_one() == {"_id": 1, "ssn": "secret"}
    auto_client.shop.people.insert_many({"_id": number} for number in range(2, 300))
    assert auto_client.shop.people.count_documents({}) == 299
    if option == "bypass_auto_encryption":
        assert auto_client.admin.command("ping")["ok"] == 1
        auto_client.shop.aggregate([{"$documents": []}]).close()


def test_undecryptable_reply_raises_encryption_error_and_kills_cursor(connect, client, encryption, key, recorder):
    auto_client = connect(None, {"event_listeners": [recorder]}, bypass_auto_encryption=True)
    secret = encryption.encrypt("secret", RANDOMIZED, key)
    client.shop.people.insert_many({"ssn": secret} for _ in range(10))
    encryption.delete_key(key)
    with pytest.raises(EncryptionError, match="not all keys requested were satisfied"):
        auto_client.shop.people.find_one()
    with pytest.raises(EncryptionError):
        next(auto_client.shop.people.find(batch_size=2))
    eventually(lambda: recorder.sent_commands("killCursors"))


def test_encryption_on_server_before_4_2_raises_error_with_version():
    with ScriptedServer() as server:
        server.hello_extra = {"maxWireVersion": 7}
        options = AutoEncryptionOpts(KMS_PROVIDERS, VAULT, bypass_query_analysis=True)
        with MongoClient(*server.address, auto_encryption_opts=options) as client:
            with pytest.raises((ConfigurationError, EncryptionError)) as caught:
                client.db.c.insert_one({"_id": 1})
            assert "4.2" in str(caught.value)


ENCRYPTED_FIELDS = {"fields": [], "escCollection": "of.esc", "ecocCollection": "of.ecoc"}
STATE_COLLECTIONS = {"of.esc", "of.ecoc"}


@pytest.mark.parametrize("in_options", [True, False], ids=["options", "server"])
def test_state_collections_are_created_and_dropped_with_encrypted_collection(connect, client, in_options, recorder):
    fields_map = {PEOPLE_NAMESPACE: ENCRYPTED_FIELDS} if in_options else None
    auto_client = connect(
        None, {"event_listeners": [recorder]}, encrypted_fields_map=fields_map, bypass_query_analysis=True
    )
    for name in ("people", *STATE_COLLECTIONS):
        client.shop[name].drop()
    session, fields = auto_client.start_session(), {} if in_options else {"encryptedFields": ENCRYPTED_FIELDS}
    auto_client.shop.create_collection("people", session=session, **fields)
    assert STATE_COLLECTIONS | {"people"} <= set(client.shop.list_collection_names())
    assert recorder.sent_commands("create")[-1]["encryptedFields"] == ENCRYPTED_FIELDS
    assert [(dict(each["clusteredIndex"]), each["lsid"]) for each in recorder.sent_commands("create")[:-1]] == [
        ({"key": {"_id": 1}, "unique": True}, session.session_id)
    ] * 2
    auto_client.shop.drop_collection("people")
    assert not (STATE_COLLECTIONS | {"people"}) & set(client.shop.list_collection_names())
    recorder.clear()
    auto_client.shop.drop_collection("plain")
    auto_client.shop.create_collection("plain", check_exists=False)
    assert recorder.commands == ["listCollections", "drop", "create"]


def test_client_without_encryption_drops_no_state_collections(client):
    client.shop.create_collection("people2", encryptedFields=ENCRYPTED_FIELDS)
    client.shop.drop_collection("people2")
    names = set(client.shop.list_collection_names())
    assert "of.esc" in names and "people2" not in names
    client.drop_database("shop")


def test_encrypted_batches_are_split_at_two_mebibytes(connect, key, recorder):
    auto_client = connect(None, {"event_listeners": [recorder]}, bypass_query_analysis=True)
    document = {"text": "x" * (1024 * 1024)}
    auto_client.shop.people.insert_many([dict(document) for _ in range(3)])
    assert [len(each["documents"]) for each in recorder.sent_commands("insert")] == [1, 1, 1]
    recorder.clear()
    auto_client.shop.people.insert_many([{"text": "x" * 700_000} for _ in range(5)])
    assert [len(each["documents"]) for each in recorder.sent_commands("insert")] == [2, 2, 1]
    recorder.clear()
    auto_client.shop.people.insert_many([{"text": "x" * 5_000_000}, {"text": "x"}])
    assert [len(each["documents"]) for each in recorder.sent_commands("insert")] == [1, 1]


@pytest.mark.parametrize("bypass_option", ["bypass_auto_encryption", "bypass_query_analysis", None])
def test_client_bulk_write_with_encryption_raises_error_of_pymongo(
    deployment, connect, client, bypass_option, recorder
):
    def message_of_error(client, errors):
        with pytest.raises(errors.InvalidOperation) as raised:
            client.bulk_write([])
        return str(raised.value)

    options = (
        {bypass_option: True}
        if bypass_option
        else {"mongocryptd_uri": "mongodb://127.0.0.1:1", "mongocryptd_bypass_spawn": True}
    )
    ours = message_of_error(connect(None, {"event_listeners": [recorder]}, **options), gmongo.errors)
    peer_options = pymongo.encryption_options.AutoEncryptionOpts(KMS_PROVIDERS, VAULT, **options)
    with pymongo.MongoClient(deployment.uri, auto_encryption_opts=peer_options) as peer:
        assert ours == message_of_error(peer, pymongo.errors)
    assert recorder.commands == []


def test_document_with_several_keys_is_decrypted(connect, client, encryption):
    keys = [encryption.create_data_key("local") for _ in range(3)]
    values = {f"f{number}": encryption.encrypt(number, RANDOMIZED, key) for number, key in enumerate(keys)}
    client.shop.people.insert_one({"_id": 7, **values})
    auto_client = connect(bypass_query_analysis=True)
    assert auto_client.shop.people.find_one({"_id": 7}) == {"_id": 7, "f0": 0, "f1": 1, "f2": 2}


def test_mongocryptd_gets_no_connection_before_command_with_values(auto_client, mongocryptd):
    auto_client.admin.command("ping")
    assert not mongocryptd.peers


def test_close_disconnects_from_mongocryptd(auto_client, mongocryptd):
    auto_client.shop.people.insert_one(dict(ANN_DOCUMENT))
    assert mongocryptd.peers
    auto_client.close()
    eventually(lambda: not mongocryptd.peers)


def test_key_vault_is_read_with_read_concern_majority(connect, client, encryption, key, recorder):
    client.shop.people.insert_one({"ssn": encryption.encrypt("1", RANDOMIZED, key)})
    # A client with an unlimited pool reads keys itself. A client with a limited pool reads keys
    # with an internal client.
    for options in ({"maxPoolSize": 0}, {}):
        auto_client = connect(None, {"event_listeners": [recorder], **options}, bypass_query_analysis=True)
        auto_client.shop.people.find_one()
    finds = [command for command in recorder.sent_commands("find") if command["$db"] == VAULT.partition(".")[0]]
    assert [command["readConcern"] for command in finds] == [{"level": "majority"}] * 2


@pytest.mark.parametrize(("size", "has_internal_client"), [(0, False), (1, True), (100, True)])
def test_client_with_limited_pool_has_an_internal_client(connect, client, encryption, key, size, has_internal_client):
    client.shop.people.insert_one({"ssn": encryption.encrypt("1", RANDOMIZED, key)})
    auto_client = connect(None, {"maxPoolSize": size, "minPoolSize": 1}, bypass_query_analysis=True)
    assert auto_client.shop.people.find_one()["ssn"] == "1"
    internal_client = auto_client._encrypter._internal_client
    assert (internal_client is not None) == has_internal_client
    if internal_client is not None:
        assert internal_client._encrypter is None
        assert internal_client.options.pool_options.min_pool_size == 0
        assert internal_client.options.pool_options.max_pool_size == size
        auto_client.close()
        with pytest.raises(InvalidOperation, match=r"Cannot use MongoClient after close$"):
            internal_client.admin.command("ping")


def test_key_vault_client_reads_keys_and_stays_open(connect, client, encryption, key):
    client.shop.people.insert_one({"ssn": encryption.encrypt("1", RANDOMIZED, key)})
    auto_client = connect(bypass_auto_encryption=True, key_vault_client=client)
    assert auto_client.shop.people.find_one()["ssn"] == "1"
    assert auto_client._encrypter._internal_client is None
    auto_client.close()
    assert client.admin.command("ping")["ok"] == 1


def test_each_concurrent_greenlet_reads_own_encrypted_value(auto_client, client):
    def write_and_read(number):
        auto_client.shop.people.insert_one({"_id": number, "ssn": str(number)})
        assert auto_client.shop.people.find_one({"ssn": str(number)})["_id"] == number
        assert is_encrypted(client.shop.people.find_one({"_id": number})["ssn"])

    greenlets = [gevent.spawn(write_and_read, number) for number in range(50)]
    gevent.joinall(greenlets, raise_error=True)


def test_dropped_client_with_automatic_encryption_is_freed(deployment, client, encryption, key):
    client.shop.people.insert_one({"ssn": encryption.encrypt("1", RANDOMIZED, key)})
    auto_client = MongoClient(
        deployment.uri,
        auto_encryption_opts=AutoEncryptionOpts(KMS_PROVIDERS, VAULT, bypass_query_analysis=True),
    )
    assert auto_client.shop.people.find_one()["ssn"] == "1"
    reference = weakref.ref(auto_client)
    gc.collect()
    gc.disable()
    try:
        del auto_client
        gevent.sleep(0.01)
        assert reference() is None
    finally:
        gc.enable()


def test_forked_child_encrypts_and_decrypts(auto_client, client):
    auto_client.shop.people.insert_one(dict(ANN_DOCUMENT))
    # The child writes its result to a pipe, because gevent may consume the exit status of the child.
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            with gevent.Timeout(10):
                decrypted = auto_client.shop.people.find_one({"ssn": ANN_DOCUMENT["ssn"]})
            auto_client.shop.people.insert_one({"_id": 2, "ssn": "2"})
            os.write(write, b"equal" if decrypted == ANN_DOCUMENT else b"different")
        finally:
            os._exit(0)
    os.close(write)
    gevent.socket.wait_read(read, timeout=15)
    assert os.read(read, 9) == b"equal"
    os.close(read)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)
    assert is_encrypted(client.shop.people.find_one({"_id": 2})["ssn"])
    assert auto_client.shop.people.find_one({"ssn": ANN_DOCUMENT["ssn"]}) == ANN_DOCUMENT


@with_cases
def test_auto_encryption_option_of_wrong_type_raises_error_with_name(options, error_class):
    (name,) = options
    with pytest.raises(error_class, match=rf"{name}(?!\w)"):
        AutoEncryptionOpts(**{"kms_providers": KMS_PROVIDERS, "key_vault_namespace": VAULT, **options})


@with_cases
def test_client_with_invalid_encryption_options_raises_error_with_reason(options, error_class, message):
    with pytest.raises(error_class, match=rf"{message}(?!\w)"):
        MongoClient(
            connect=False,
            auto_encryption_opts=AutoEncryptionOpts(
                **{"kms_providers": KMS_PROVIDERS, "key_vault_namespace": VAULT, **options}
            ),
        )

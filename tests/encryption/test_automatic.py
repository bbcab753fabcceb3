"""Clients that encrypt and decrypt by themselves. A stand-in for mongocryptd marks what the schema says."""

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
from gmongo._encryption.operation import EncryptedOperation
from gmongo.encryption import Algorithm
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import ConfigurationError, EncryptionError, InvalidOperation, ServerSelectionTimeoutError
from gmongo.execution.operation import Operation
from gmongo.execution.operation_context import OperationContext
from gmongo.monitoring import CommandListener
from gmongo.operations.run_command import RunCommand
from tests.encryption.conftest import LOCAL, VAULT
from tests.support.mongocryptd import Mongocryptd
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

DETERMINISTIC = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic
AT_RANDOM = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random
PEOPLE = "shop.people"


class Recorder(CommandListener):
    def __init__(self):
        self.commands, self.replies = [], []

    def started(self, event):
        self.commands.append(event.command)

    def succeeded(self, event):
        self.replies.append((event.command_name, event.reply))

    def failed(self, event):
        pass

    def named(self, name):
        return [each for each in self.commands if name in each]


@pytest.fixture
def mongocryptd():
    with Mongocryptd() as running:
        yield running


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
            "secret": rule(AT_RANDOM),
            "address": {"bsonType": "object", "properties": {"street": rule(DETERMINISTIC)}},
        },
    }


@pytest.fixture
def connect(deployment):
    made = []

    def make(uri=None, options=None, **auto):
        client = MongoClient(
            uri or deployment.uri, auto_encryption_opts=AutoEncryptionOpts(LOCAL, VAULT, **auto), **(options or {})
        )
        made.append(client)
        return client

    yield make
    for each in made:
        each.close()


@pytest.fixture
def automatic(connect, schema, mongocryptd):
    recorder = Recorder()
    client = connect(
        None,
        {"event_listeners": [recorder]},
        schema_map={PEOPLE: schema},
        mongocryptd_uri=mongocryptd.uri,
        mongocryptd_bypass_spawn=True,
    )
    client.recorder = recorder
    return client


ANN = {"_id": 1, "name": "ann", "ssn": "457-55-5462", "secret": "gold", "address": {"street": "Main"}}


def is_encrypted(value):
    return isinstance(value, bson.Binary) and value.subtype == 6


def test_every_operation(automatic, client, theirs):
    """What is written is encrypted, what is searched for is, and what is read is decrypted."""
    people, stored = automatic.shop.people, client.shop.people
    people.insert_one(dict(ANN))
    raw = stored.find_one({"_id": 1})
    assert is_encrypted(raw["ssn"]) and is_encrypted(raw["secret"]) and is_encrypted(raw["address"]["street"])
    assert raw["name"] == "ann"
    assert theirs.encryption.decrypt(raw["ssn"]) == "457-55-5462"

    assert people.find_one({"ssn": "457-55-5462"}) == ANN
    assert people.find_one({"ssn": {"$in": ["457-55-5462", "other"]}}) == ANN
    assert people.find_one({"$or": [{"address.street": "Main"}, {"name": "nobody"}]}) == ANN
    assert people.find_one({"ssn": "other"}) is None
    assert list(people.aggregate([{"$match": {"ssn": "457-55-5462"}}])) == [ANN]
    assert people.count_documents({"ssn": "457-55-5462"}) == 1
    assert people.distinct("ssn") == ["457-55-5462"]

    assert people.update_one({"ssn": "457-55-5462"}, {"$set": {"ssn": "1", "age": 7}}).modified_count == 1
    assert is_encrypted(stored.find_one({"_id": 1})["ssn"])
    assert people.find_one_and_update({"ssn": "1"}, {"$set": {"secret": "silver"}})["secret"] == "gold"
    assert people.find_one_and_replace({"ssn": "1"}, {"ssn": "2"}, return_document=True) == {"_id": 1, "ssn": "2"}
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
    assert all(is_encrypted(each["ssn"]) for each in stored.find())
    assert people.delete_many({"ssn": {"$in": ["0", "4"]}}).deleted_count == 2
    assert people.update_many({"ssn": "9"}, {"$set": {"secret": "x"}}).modified_count == 1


def test_cursors_and_raw_batches(automatic, client):
    people = automatic.shop.people
    people.insert_many([{"_id": number, "ssn": str(number)} for number in range(10)])
    assert [each["ssn"] for each in people.find(batch_size=3).sort("_id", 1)] == [str(n) for n in range(10)]
    batches = b"".join(people.find_raw_batches(batch_size=3).sort("_id", 1))
    assert [each["ssn"] for each in bson.decode_all(batches)] == [str(number) for number in range(10)]
    raw = people.with_options(bson.CodecOptions(document_class=RawBSONDocument))
    assert raw.find_one({"_id": 1})["ssn"] == "1"


def test_what_is_monitored_is_encrypted(automatic):
    automatic.shop.people.insert_one(dict(ANN))
    assert automatic.shop.people.find_one({"ssn": "457-55-5462"}) == ANN
    seen = repr(automatic.recorder.commands) + repr(automatic.recorder.replies)
    assert "457-55-5462" not in seen and "gold" not in seen
    [insert] = automatic.recorder.named("insert")
    assert is_encrypted(insert["documents"][0]["ssn"])
    [found] = [reply for name, reply in automatic.recorder.replies if name == "find" and "people" in str(reply)]
    assert is_encrypted(found["cursor"]["firstBatch"][0]["ssn"])


def test_a_command_that_cannot_be_encrypted_is_not_sent(automatic):
    people = automatic.shop.people
    automatic.recorder.commands.clear()
    for refused, message in (
        (lambda: people.find_one({"secret": "gold"}), "randomized"),
        (lambda: people.find_one({"ssn": {"$gt": "1"}}), "Invalid match expression operator"),
        (lambda: people.update_one({}, {"$push": {"ssn": "x"}}), "not allowed on encrypted values"),
        (lambda: automatic.shop.command("killOp", 1), "command not supported for auto encryption: killOp"),
        (lambda: automatic.shop.aggregate([{"$documents": []}]), "non-collection command not supported"),
    ):
        with pytest.raises(EncryptionError, match=message):
            refused()
    assert automatic.recorder.commands == []


def test_mongocryptd_cannot_be_reached(connect, schema, client, monkeypatch):
    monkeypatch.setattr("gmongo._encryption.query_analysis._SELECTION_TIMEOUT_MS", 50)
    away = connect(schema_map={PEOPLE: schema}, mongocryptd_uri="mongodb://127.0.0.1:1/", mongocryptd_bypass_spawn=True)
    with pytest.raises(EncryptionError) as caught:
        away.shop.people.insert_one(dict(ANN))
    assert isinstance(caught.value.cause, ServerSelectionTimeoutError)
    assert client.shop.people.find_one() is None


def test_mongocryptd_is_started_before_it_is_asked_and_when_it_is_gone(
    connect, schema, client, monkeypatch, tmp_path, caplog
):
    monkeypatch.setattr("gmongo._encryption.query_analysis._SELECTION_TIMEOUT_MS", 50)
    program, told = tmp_path / "program", tmp_path / "told"
    program.write_text(f'#!/bin/sh\necho "$@" >> {told}\n')
    program.chmod(0o755)
    away = connect(
        schema_map={PEOPLE: schema},
        mongocryptd_uri="mongodb://127.0.0.1:1/",
        mongocryptd_spawn_path=str(program),
        mongocryptd_spawn_args=["--port=1"],
    )
    assert not told.exists()
    for times in (2, 3):  # once before the first question, and again after each that is not answered
        with pytest.raises(EncryptionError):
            away.shop.people.insert_one(dict(ANN))
        eventually(lambda times=times: told.exists() and len(told.read_text().splitlines()) == times)
    assert set(told.read_text().splitlines()) == {"--port=1 --idleShutdownTimeoutSecs=60"}
    assert "cannot be started" not in caplog.text


def test_a_program_that_is_not_there_is_named(connect, schema, monkeypatch, caplog):
    monkeypatch.setattr("gmongo._encryption.query_analysis._SELECTION_TIMEOUT_MS", 50)
    options = {"mongocryptd_uri": "mongodb://127.0.0.1:1/", "mongocryptd_spawn_path": "no-such-program"}
    away = connect(schema_map={PEOPLE: schema}, **options)
    with pytest.raises(EncryptionError) as caught:
        away.shop.people.insert_one(dict(ANN))
    assert isinstance(caught.value.cause, ServerSelectionTimeoutError)
    assert "PATH contains no 'no-such-program' (mongocryptd_spawn_path)" in caplog.text


def test_the_servers_schema(client, connect, schema, mongocryptd):
    client.shop.create_collection("people", validator={"$jsonSchema": schema})
    recorder = Recorder()
    automatic = connect(
        None,
        {"event_listeners": [recorder]},
        mongocryptd_uri=mongocryptd.uri,
        mongocryptd_bypass_spawn=True,
    )
    automatic.shop.people.insert_one({"_id": 1, "ssn": "1"})
    automatic.shop.people.insert_one({"_id": 2, "ssn": "2"})
    assert is_encrypted(client.shop.people.find_one({"_id": 1})["ssn"])
    assert len(recorder.named("listCollections")) == 1  # the schema is kept
    assert len([each for each in recorder.named("find") if each["find"] == "datakeys"]) == 1  # and so is the key


def test_a_key_by_its_alternative_name(connect, client, mongocryptd, key):
    encrypt = {"keyId": "/altname", "bsonType": "string", "algorithm": AT_RANDOM.value}
    automatic = connect(
        schema_map={PEOPLE: {"bsonType": "object", "properties": {"ssn": {"encrypt": encrypt}}}},
        mongocryptd_uri=mongocryptd.uri,
        mongocryptd_bypass_spawn=True,
    )
    automatic.shop.people.insert_one({"_id": 1, "ssn": "1", "altname": "name"})
    assert is_encrypted(client.shop.people.find_one()["ssn"])
    assert automatic.shop.people.find_one()["ssn"] == "1"
    with pytest.raises(EncryptionError, match="not all keys requested were satisfied"):
        automatic.shop.people.insert_one({"ssn": "1", "altname": "no such name"})


def test_transactions(automatic, client):
    """Keys are read outside of the transaction."""
    with automatic.start_session() as session, session.start_transaction():
        automatic.shop.people.insert_one(dict(ANN), session=session)
        assert automatic.shop.people.find_one({"ssn": "457-55-5462"}, session=session) == ANN
    assert is_encrypted(client.shop.people.find_one()["ssn"])
    for command in automatic.recorder.named("find"):
        assert ("txnNumber" in command) == (command["find"] == "people")
    with automatic.start_session() as session, session.bind(), session.start_transaction():
        assert automatic.shop.people.find_one({"ssn": "457-55-5462"}) == ANN


def test_a_retry_sends_the_same(automatic, client):
    client.admin.command(
        {"configureFailPoint": "failCommand", "mode": {"times": 1}},
        data={"failCommands": ["insert"], "errorCode": 91, "errorLabels": ["RetryableWriteError"]},
    )
    automatic.shop.people.insert_one(dict(ANN))
    one, other = automatic.recorder.named("insert")
    assert one["documents"] == other["documents"]
    assert one["txnNumber"] == other["txnNumber"]


def test_unacknowledged_writes(automatic, client):
    people = automatic.shop.people.with_options(write_concern=gmongo.WriteConcern(w=0))
    people.insert_one(dict(ANN))
    with gevent.Timeout(5):
        while (found := client.shop.people.find_one()) is None:
            gevent.sleep(0.01)
    assert is_encrypted(found["ssn"])


# Without analysis, and without encryption


@pytest.mark.parametrize("option", ["bypass_auto_encryption", "bypass_query_analysis"])
def test_bypassed(connect, client, encryption, key, option):
    automatic = connect(**{option: True}, mongocryptd_uri="mongodb://127.0.0.1:1/")
    secret = encryption.encrypt("secret", AT_RANDOM, key)
    automatic.shop.people.insert_one({"_id": 1, "ssn": secret})
    assert client.shop.people.find_one() == {"_id": 1, "ssn": secret}
    assert automatic.shop.people.find_one() == {"_id": 1, "ssn": "secret"}
    automatic.shop.people.insert_many({"_id": number} for number in range(2, 300))
    assert automatic.shop.people.count_documents({}) == 299
    if option == "bypass_auto_encryption":
        assert automatic.admin.command("ping")["ok"] == 1
        automatic.shop.aggregate([{"$documents": []}]).close()


def test_a_reply_that_cannot_be_decrypted(connect, client, encryption, key):
    recorder = Recorder()
    automatic = connect(None, {"event_listeners": [recorder]}, bypass_auto_encryption=True)
    secret = encryption.encrypt("secret", AT_RANDOM, key)
    client.shop.people.insert_many({"ssn": secret} for _ in range(10))
    encryption.delete_key(key)
    with pytest.raises(EncryptionError, match="not all keys requested were satisfied"):
        automatic.shop.people.find_one()
    with pytest.raises(EncryptionError):
        next(automatic.shop.people.find(batch_size=2))
    # The cursor that was opened is ended.
    with gevent.Timeout(5):
        while not recorder.named("killCursors"):
            gevent.sleep(0.01)


def test_old_servers():
    with ScriptedServer() as server:
        server.hello_extra = {"maxWireVersion": 7}
        options = AutoEncryptionOpts(LOCAL, VAULT, bypass_query_analysis=True)
        with MongoClient(*server.address, auto_encryption_opts=options) as client:
            with pytest.raises((ConfigurationError, EncryptionError)) as caught:
                client.db.c.insert_one({"_id": 1})
            assert "4.2" in str(caught.value)


FIELDS = {"fields": [], "escCollection": "of.esc"}
BESIDE = {"of.esc", "enxcol_.people.ecoc"}


@pytest.mark.parametrize("known", [True, False], ids=["by the options", "by the server"])
def test_collections_beside_one_come_and_go_with_it(connect, client, known, recorder):
    fields_map = {PEOPLE: FIELDS} if known else None
    automatic = connect(
        None, {"event_listeners": [recorder]}, encrypted_fields_map=fields_map, bypass_query_analysis=True
    )
    for name in ("people", *BESIDE):
        client.shop[name].drop()
    automatic.shop.create_collection("people", **({} if known else {"encryptedFields": FIELDS}))
    assert BESIDE | {"people"} <= set(client.shop.list_collection_names())
    assert recorder.sent("create")[-1]["encryptedFields"] == FIELDS
    assert [dict(each["clusteredIndex"]) for each in recorder.sent("create")[:-1]] == [
        {"key": {"_id": 1}, "unique": True}
    ] * 2
    automatic.shop.drop_collection("people")
    assert not (BESIDE | {"people"}) & set(client.shop.list_collection_names())
    recorder.forget()
    automatic.shop.drop_collection("plain")
    assert recorder.commands == ["listCollections", "drop"]


def test_a_collection_of_a_client_that_does_not_encrypt_is_dropped_alone(client):
    client.shop.create_collection("people2", encryptedFields=FIELDS)
    client.shop.drop_collection("people2")
    names = set(client.shop.list_collection_names())
    assert "of.esc" in names and "people2" not in names
    client.drop_database("shop")


# Sizes


def test_batches_are_split_at_two_mebibytes(connect, client, key):
    recorder = Recorder()
    automatic = connect(None, {"event_listeners": [recorder]}, bypass_query_analysis=True)
    document = {"text": "x" * (1024 * 1024)}
    automatic.shop.people.insert_many([dict(document) for _ in range(3)])
    assert [len(each["documents"]) for each in recorder.named("insert")] == [1, 1, 1]
    recorder.commands.clear()
    automatic.shop.people.insert_many([{"text": "x" * 700_000} for _ in range(5)])
    assert [len(each["documents"]) for each in recorder.named("insert")] == [2, 2, 1]
    recorder.commands.clear()
    automatic.shop.people.insert_many([{"text": "x" * 5_000_000}, {"text": "x"}])
    assert [len(each["documents"]) for each in recorder.named("insert")] == [1, 1]


@pytest.mark.parametrize("bypass", ["bypass_auto_encryption", "bypass_query_analysis", None])
def test_bulk_writes_of_a_client_are_refused_at_once_as_by_pymongo(deployment, connect, client, bypass):
    def refused(made, errors):
        with pytest.raises(errors.InvalidOperation) as raised:
            made.bulk_write([])  # before anything else is looked at, and anything is sent
        return str(raised.value)

    options = (
        {bypass: True} if bypass else {"mongocryptd_uri": "mongodb://127.0.0.1:1", "mongocryptd_bypass_spawn": True}
    )
    recorder = Recorder()
    ours = refused(connect(None, {"event_listeners": [recorder]}, **options), gmongo.errors)
    auto = pymongo.encryption_options.AutoEncryptionOpts(LOCAL, VAULT, **options)
    with pymongo.MongoClient(deployment.uri, auto_encryption_opts=auto) as theirs:
        assert ours == refused(theirs, pymongo.errors)
    assert recorder.commands == []


# Clients


def test_one_connection_is_enough(deployment, connect, schema, mongocryptd):
    automatic = connect(
        None,
        {"maxPoolSize": 1},
        schema_map={PEOPLE: schema},
        mongocryptd_uri=mongocryptd.uri,
        mongocryptd_bypass_spawn=True,
    )
    with gevent.Timeout(10):
        automatic.shop.people.insert_one(dict(ANN))
        assert automatic.shop.people.find_one({"ssn": ANN["ssn"]}) == ANN


def test_the_values_of_a_document_may_have_keys_of_their_own(connect, client, encryption):
    keys = [encryption.create_data_key("local") for _ in range(3)]
    values = {f"f{number}": encryption.encrypt(number, AT_RANDOM, key) for number, key in enumerate(keys)}
    client.shop.people.insert_one({"_id": 7, **values})
    automatic = connect(bypass_query_analysis=True)
    assert automatic.shop.people.find_one({"_id": 7}) == {"_id": 7, "f0": 0, "f1": 1, "f2": 2}


def test_nothing_stays_connected_to_mongocryptd(automatic, mongocryptd):
    automatic.shop.people.insert_one(dict(ANN))
    assert mongocryptd.peers
    automatic.close()
    eventually(lambda: not mongocryptd.peers)


def test_the_key_vault_is_read_and_written_with_a_majority(connect, client, encryption, key, recorder):
    client.shop.people.insert_one({"ssn": encryption.encrypt("1", AT_RANDOM, key)})
    for options in ({"maxPoolSize": 0}, {}):  # through the client itself, and through one beside it
        automatic = connect(None, {"event_listeners": [recorder], **options}, bypass_query_analysis=True)
        automatic.shop.people.find_one()
    asked = [command for command in recorder.sent("find") if command["$db"] == VAULT.partition(".")[0]]
    assert [command["readConcern"] for command in asked] == [{"level": "majority"}] * 2


@pytest.mark.parametrize(("size", "others"), [(0, 0), (1, 1), (100, 1)])
def test_which_clients_there_are(connect, client, encryption, key, size, others):
    client.shop.people.insert_one({"ssn": encryption.encrypt("1", AT_RANDOM, key)})
    automatic = connect(None, {"maxPoolSize": size, "minPoolSize": 1}, bypass_query_analysis=True)
    assert automatic.shop.people.find_one()["ssn"] == "1"
    internal = automatic._encrypter._internal
    assert (internal is not None) == bool(others)
    if internal is not None:
        assert internal._encrypter is None
        assert internal.options.pool_options.min_pool_size == 0
        assert internal.options.pool_options.max_pool_size == size
        automatic.close()
        with pytest.raises(InvalidOperation):
            internal.admin.command("ping")


def test_a_key_vault_elsewhere(connect, client, encryption, key):
    client.shop.people.insert_one({"ssn": encryption.encrypt("1", AT_RANDOM, key)})
    automatic = connect(bypass_auto_encryption=True, key_vault_client=client)
    assert automatic.shop.people.find_one()["ssn"] == "1"
    assert automatic._encrypter._internal is None
    automatic.close()
    assert client.admin.command("ping")["ok"] == 1


def test_beside_a_plain_client(automatic, client):
    """Both at once, in many greenlets."""

    def work(number):
        automatic.shop.people.insert_one({"_id": number, "ssn": str(number)})
        assert automatic.shop.people.find_one({"ssn": str(number)})["_id"] == number
        assert is_encrypted(client.shop.people.find_one({"_id": number})["ssn"])

    greenlets = [gevent.spawn(work, number) for number in range(50)]
    gevent.joinall(greenlets, raise_error=True)


def test_a_dropped_client_goes_away(deployment, client, encryption, key):
    client.shop.people.insert_one({"ssn": encryption.encrypt("1", AT_RANDOM, key)})
    automatic = MongoClient(
        deployment.uri, auto_encryption_opts=AutoEncryptionOpts(LOCAL, VAULT, bypass_query_analysis=True)
    )
    assert automatic.shop.people.find_one()["ssn"] == "1"
    gone = weakref.ref(automatic)
    gc.collect()
    gc.disable()
    try:
        del automatic
        gevent.sleep(0.01)
        assert gone() is None
    finally:
        gc.enable()


def test_a_closed_client(automatic):
    automatic.close()
    with pytest.raises(InvalidOperation):
        automatic.shop.people.find_one()
    automatic.close()


def test_in_a_forked_child(automatic, client):
    automatic.shop.people.insert_one(dict(ANN))
    read, write = os.pipe()  # not its status: gevent's loop waits for all children, if it has ever waited for one
    child = os.fork()
    if not child:
        try:
            with gevent.Timeout(10):
                found = automatic.shop.people.find_one({"ssn": ANN["ssn"]})
            automatic.shop.people.insert_one({"_id": 2, "ssn": "2"})
            os.write(write, b"found" if found == ANN else b"lost")
        finally:
            os._exit(0)
    os.close(write)
    gevent.socket.wait_read(read, timeout=15)
    assert os.read(read, 9) == b"found"
    os.close(read)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)
    assert is_encrypted(client.shop.people.find_one({"_id": 2})["ssn"])
    assert automatic.shop.people.find_one({"ssn": ANN["ssn"]}) == ANN


# Security


def test_no_secret_is_shown(automatic, connect, caplog):
    master = LOCAL["local"]["key"]
    options = AutoEncryptionOpts({"aws": {"accessKeyId": "id", "secretAccessKey": "very secret"}, **LOCAL}, VAULT)
    shown = [
        repr(options),
        repr(automatic),
        repr(options._settings),
        repr(automatic._encrypter),
        repr(automatic.options),
    ]
    assert "very secret" not in "".join(shown)
    assert repr(master)[2:20] not in "".join(shown)
    assert "very secret" not in caplog.text


def test_nothing_goes_around_the_encryption():
    """Whatever an operation has, the one with encryption answers itself, or it is harmless."""
    asked = set(vars(EncryptedOperation))
    # These are made of the others, or say nothing.
    harmless = {"sequences", "message"}
    has = {name for name, value in vars(Operation).items() if callable(value) or isinstance(value, property)}
    assert {name for name in has if not name.startswith("__")} - asked <= harmless
    copied = EncryptedOperation(RunCommand(OperationContext("db"), {"ping": 1}), None, None)
    assert set(Operation.__annotations__) - {"codec_options"} <= set(vars(copied))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"key_vault_namespace": "nodot"}, ConfigurationError),
        ({"key_vault_namespace": 5}, TypeError),
        ({"kms_providers": 5}, TypeError),
        ({"schema_map": 5}, TypeError),
        ({"encrypted_fields_map": 5}, TypeError),
        ({"bypass_auto_encryption": 1}, TypeError),
        ({"mongocryptd_spawn_args": "x"}, TypeError),
        ({"kms_connect_callback": 5}, TypeError),
    ],
)
def test_options_are_checked_at_construction(options, error):
    (name,) = options
    with pytest.raises(error, match=name):
        AutoEncryptionOpts(**{"kms_providers": LOCAL, "key_vault_namespace": VAULT, **options})


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"kms_providers": {}}, ValueError, "at least one KMS provider must be configured"),
        ({"kms_providers": {"local": {}}}, ValueError, "local"),
        ({"kms_providers": {"nonsense": {}}}, EncryptionError, "nonsense"),
        ({"kms_providers": {"local": {"key": b"short"}}}, EncryptionError, "local key must be 96 bytes"),
        (
            {"schema_map": {"a.b": {}}, "encrypted_fields_map": {"a.b": {"fields": []}}},
            EncryptionError,
            "a.b is present",
        ),
        ({"crypt_shared_lib_path": "/no/such/library.so"}, EncryptionError, "/no/such/library.so"),
        (
            {"crypt_shared_lib_required": True},
            EncryptionError,
            "crypt_shared_lib_required=True, but .* from the system's search path for libraries$",
        ),
        (
            {"crypt_shared_lib_path": "/no/such/library.so", "crypt_shared_lib_required": True},
            EncryptionError,
            "/no/such/library.so",
        ),
        ({"key_expiration_ms": -1}, ValueError, "key_expiration_ms"),
    ],
)
def test_a_client_with_wrong_options_is_not_made(options, error, why):
    with pytest.raises(error, match=why):
        MongoClient(
            connect=False,
            auto_encryption_opts=AutoEncryptionOpts(
                **{"kms_providers": LOCAL, "key_vault_namespace": VAULT, **options}
            ),
        )

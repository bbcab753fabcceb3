"""Automatic encryption without a server: which client is asked for what, and how mongocryptd is asked and started."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import bson
import pytest
from bson import DatetimeMS
from bson.raw_bson import RawBSONDocument
from gevent import GreenletExit

pytest.importorskip("pymongocrypt", reason="pymongocrypt is not installed")

from gmongo._encryption import automatic, collections, library, query_analysis
from gmongo._encryption import operation as encrypted_operation
from gmongo._encryption.automatic import Encrypter
from gmongo._encryption.executor import EncryptingExecutor
from gmongo._encryption.library import require_library
from gmongo._encryption.query_analysis import Mongocryptd
from gmongo.errors import ConfigurationError, EncryptionError, ServerSelectionTimeoutError
from gmongo.events.command import CommandEvents
from gmongo.execution.context import OperationContext
from gmongo.execution.executor import Executor
from gmongo.execution.retry import ExecutionSettings


class Client(Mock):
    """Mocks of clients that can be referred to weakly."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Any:
    """In the place of the library."""
    handle = Mock(crypt_shared_version=None, settings=Mock(kms_providers={}, on_demand=()))
    monkeypatch.setattr(automatic, "opened", lambda settings: handle)
    return handle


def options_of(**changed: Any) -> Any:
    usual = {
        "_key_vault_namespace": "keys.vault",
        "_settings": SimpleNamespace(analyses=False),
        "_bypass_auto_encryption": False,
        "_kms_tls": None,
        "_kms_connect_callback": None,
        "_encrypted_fields_map": {"db.c": {"fields": []}},
        "_key_vault_client": None,
        "_mongocryptd_uri": "mongodb://d/",
        "_mongocryptd_command": ["mongocryptd", "-x"],
        "_mongocryptd_bypass_spawn": False,
    }
    return SimpleNamespace(**{**usual, **changed})


def client_of(**merged: Any) -> Any:
    return Client(options=SimpleNamespace(merged=merged))


def encrypter_of(client: Any, construction: Any = None, **options: Any) -> tuple[Encrypter, Any, Any]:
    new, silent = Mock(), Mock()
    return Encrypter(client, options_of(**options), new, silent, construction or {}), new, silent


@pytest.mark.parametrize(
    ("merged", "same"),
    [({}, False), ({"maxpoolsize": 5}, False), ({"maxpoolsize": 0}, True), ({"maxpoolsize": None}, True)],
)
def test_the_client_that_is_asked_for_keys(opened: Any, merged: dict[str, Any], same: bool) -> None:
    client = client_of(**merged)
    construction = {"host": "h", "auto_encryption_opts": 1, "minPoolSize": 3, "maxPoolSize": 5}
    encrypter, new, _ = encrypter_of(client, construction)
    found = encrypter.other_client()
    assert encrypter.other_client() is found
    if same:
        assert found is client and not new.called
    else:
        assert found is new.return_value
        new.assert_called_once_with(host="h", maxPoolSize=5, minPoolSize=0)
    for _ in range(2):
        encrypter.close()
    assert (found.close.call_count, opened.close.call_count) == (0 if same else 1, 2)
    gone, _, _ = encrypter_of(client_of())
    gc.collect()
    with pytest.raises(EncryptionError, match=r"^the client is gone$") as caught:
        gone.other_client()
    assert type(caught.value.cause) is ReferenceError


def test_a_client_of_the_applications_may_have_the_keys(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(automatic, "key_vault", lambda client, namespace: asked.append((client, namespace)))
    client = client_of(maxpoolsize=0)
    for own in (None, "own"):
        encrypter_of(client, _key_vault_client=own)[0].key_vault()
    assert asked == [(client, "keys.vault"), ("own", "keys.vault")]
    with pytest.raises(ConfigurationError):
        encrypter_of(client, _key_vault_namespace="one")


@pytest.mark.parametrize("analyses", [False, True])
@pytest.mark.parametrize("bypassed", [False, True])
@pytest.mark.parametrize("version", [None, "7.0"])
def test_mongocryptd_is_needed_without_crypt_shared(opened: Any, analyses: bool, bypassed: bool, version: Any) -> None:
    opened.crypt_shared_version = version
    client = client_of()
    settings = SimpleNamespace(analyses=analyses)
    encrypter, _, silent = encrypter_of(client, _settings=settings, _bypass_auto_encryption=bypassed)
    needed = analyses and not bypassed and version is None
    assert silent.called is needed
    if needed:
        silent.assert_called_once_with("mongodb://d/", connect=False, serverSelectionTimeoutMS=10_000)
        encrypter.close()
        assert silent.return_value.close.call_count == 1
    else:
        with pytest.raises(EncryptionError) as caught:
            encrypter.analysed("db", b"")
        assert str(caught.value) == "libmongocrypt asks for an analysis that the options rule out"
        assert type(caught.value.cause) is RuntimeError


@pytest.mark.parametrize("bypassed", [False, True])
@pytest.mark.parametrize("made", [None, b"encrypted"])
def test_what_needs_no_encryption_stays_as_it_is(opened: Any, bypassed: bool, made: Any) -> None:
    client = client_of()
    encrypter, _, _ = encrypter_of(client, _bypass_auto_encryption=bypassed)
    encrypter._machine = Mock()
    encrypter._machine.run.return_value = made
    assert encrypter.encrypt("db", b"command", 5.0) == (b"command" if bypassed or made is None else made)
    assert [call.args[1:] for call in encrypter._machine.run.call_args_list] == ([] if bypassed else [(7, 5.0)])
    assert encrypter.decrypt(b"encrypted", 5.0) is None
    assert encrypter._machine.run.call_args.args[1:] == (9, 5.0)
    encrypter._machine.run.return_value = b"plain"
    assert encrypter.decrypt(b"encrypted", 5.0) == b"plain"
    assert encrypter.encrypted_fields("db.c") == {"fields": []} and encrypter.encrypted_fields("db.d") is None


def test_what_servers_are_asked(opened: Any) -> None:
    client = client_of(maxpoolsize=0)
    cursor = Mock(__enter__=lambda _: [{"name": "c"}], __exit__=Mock(return_value=None))
    database = Mock()
    database.list_collections.return_value = cursor
    client.__getitem__ = lambda _, name: database if name == "db" else None
    encrypter, _, _ = encrypter_of(client)
    servers = encrypter._machine._database
    asked = bson.encode({"name": "c"})
    assert servers.collections("db", asked) == [bson.encode({"name": "c"})]
    assert database.list_collections.call_args.kwargs["filter"].raw == asked and cursor.__exit__.called
    encrypter.analysed = Mock(return_value=b"marked")  # type: ignore[method-assign]
    assert servers.analysed("db", b"command") == b"marked"
    encrypter.analysed.assert_called_once_with("db", b"command")
    encrypter.key_vault = Mock()  # type: ignore[method-assign]
    assert servers.keys(b"filter") is encrypter.key_vault.return_value.keys.return_value


# mongocryptd


COMMAND = bson.encode({"find": "c", "filter": {"ssn": "s3cret"}, "$db": "db"})


@pytest.mark.parametrize("bypassed", [False, True])
@pytest.mark.parametrize("failures", [0, 1, 2])
@pytest.mark.parametrize("there", [False, True])
def test_mongocryptd_is_started_first_and_when_it_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, bypassed: bool, failures: int, there: bool
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(query_analysis, "spawn_apart", started.append)
    monkeypatch.setattr(query_analysis.shutil, "which", lambda name: "path" if there else None)
    run = Mock(side_effect=[*[ServerSelectionTimeoutError("x")] * failures, b"one", b"two"])
    client = Mock(_executor=Mock(run=run))
    asked = Mongocryptd(options_of(_mongocryptd_bypass_spawn=bypassed), lambda *_, **__: client)
    if failures > (not bypassed):
        with pytest.raises(ServerSelectionTimeoutError):
            asked.analysed("db", COMMAND)
    else:
        assert (asked.analysed("db", COMMAND), asked.analysed("db", COMMAND)) == (b"one", b"two")
    starts = 0 if bypassed else 1 + (failures > 0)
    assert started == [["mongocryptd", "-x"]] * (starts if there else 0)
    assert [record.getMessage() for record in caplog.records] == [
        "mongocryptd cannot be started: there is no 'mongocryptd' (mongocryptd_spawn_path) in PATH"
    ] * (0 if there else starts)
    operation = run.call_args.args[0]
    assert operation.context.database == "db" and operation.takes_session is False
    asked.close()
    assert client.close.called


def test_a_refusal_of_mongocryptd_shows_nothing_of_the_command() -> None:
    raw = RawBSONDocument(COMMAND)
    operation = query_analysis._Analyse(OperationContext("db"), raw)
    reply = bson.encode({"ok": 0, "errmsg": "it was s3cret", "code": 5})
    found = operation.decode(reply)
    assert "s3cret" not in str(found) and found["code"] == 5
    assert operation.result(found, ("h", 1)) == reply


# Beside it


@pytest.mark.parametrize("found", [None, {"fields": []}])
@pytest.mark.parametrize("ask", [False, True])
@pytest.mark.parametrize("options", [None, {}, {"encryptedFields": {"fields": [1]}}])
def test_the_encrypted_fields_of_a_collection(
    monkeypatch: pytest.MonkeyPatch, found: Any, ask: bool, options: Any
) -> None:
    encrypter = Mock()
    encrypter.encrypted_fields.return_value = found
    monkeypatch.setattr(collections, "parts_of", lambda client: SimpleNamespace(_encrypter=client))
    database: Any = Mock(client=encrypter)
    database.name = "db"
    database.list_collections.return_value = [{"options": options}]
    asks = found is None and ask
    expected = (options or {}).get("encryptedFields") if asks else found
    assert collections.encrypted_fields_of(database, "c", None, ask=ask) == expected
    encrypter.encrypted_fields.assert_called_once_with("db.c")
    assert [call.args for call in database.list_collections.call_args_list] == ([(None, {"name": "c"})] if asks else [])
    database.client = None
    assert collections.encrypted_fields_of(database, "c", None, ask=ask) is None


def test_the_collections_beside_one_are_made() -> None:
    database = Mock(_context=OperationContext("db"))
    collections.create_state_collections(database, "c", {}, "session")  # type: ignore[arg-type]
    calls = [call.args for call in database._executor.run.call_args_list]
    assert [session for _, session in calls] == ["session"] * 2
    hello: Any = SimpleNamespace(max_wire_version=25)
    assert [operation.command(hello) for operation, _ in calls] == [
        {"create": f"enxcol_.c.{kind}", "clusteredIndex": {"key": {"_id": 1}, "unique": True}}
        for kind in ("esc", "ecoc")
    ]


@pytest.mark.parametrize("error", [ValueError("no"), GreenletExit()])
def test_a_result_that_cannot_be_decrypted_is_ended(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    encrypter: Any = Mock()
    executor = EncryptingExecutor(Mock(epoch=0), ExecutionSettings(), CommandEvents((), silent=False), encrypter)
    ran: list[Any] = []
    monkeypatch.setattr(Executor, "run", lambda self, *arguments: ran.append(arguments) or "result")
    reaped = Mock()
    monkeypatch.setattr(EncryptingExecutor, "reap", reaped)
    operation: Any = Mock(context=OperationContext("db"))
    assert executor.run(operation, None, 7.0) == "result"
    assert ran[0][1:] == (None, 7.0) and not reaped.called
    encrypted = ran[0][0]
    monkeypatch.setattr(type(encrypted), "decrypted", Mock(side_effect=error))
    with pytest.raises(type(error)):
        executor.run(operation)
    reaped.assert_called_once_with(operation, "result")
    assert ran[1][1:] == (None, None)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    require_library()
    for error in (AttributeError("x"), OSError("x"), RuntimeError("x")):
        monkeypatch.setattr(library, "lib", SimpleNamespace(mongocrypt_version=Mock(side_effect=error)))
        with pytest.raises(ConfigurationError, match=r"^client-side encryption needs libmongocrypt: x$") as caught:
            require_library()
        assert caught.value.__cause__ is error
    monkeypatch.setattr(library, "missing", missing := ImportError("none"))
    with pytest.raises(ConfigurationError) as caught:
        require_library()
    assert caught.value.__cause__ is missing
    assert str(caught.value) == (
        "client-side encryption needs pymongocrypt, which cannot be imported (none): pip install 'gmongo[encryption]'"
    )


def test_what_a_refusal_may_quote() -> None:
    command = {"find": "coll-7", "filter": {"a": "filter-7"}, "$db": "db-7"}
    of_schema = {
        name: {"x": f"{name}-7"}
        for name in ("jsonSchema", "isRemoteSchema", "encryptionInformation", "csfleEncryptionSchemas")
    }
    raw = RawBSONDocument(bson.encode({**command, **of_schema}))
    operation = query_analysis._Analyse(OperationContext("db"), raw)
    said = "coll-7 db-7 jsonSchema-7 isRemoteSchema-7 encryptionInformation-7 csfleEncryptionSchemas-7"
    assert operation.decode(bson.encode({"ok": 0, "errmsg": said, "code": 5}))["errmsg"] == said
    assert said not in operation.decode(bson.encode({"ok": 0, "errmsg": f"{said} filter-7", "code": 5}))["errmsg"]


def test_a_date_that_is_none_of_pythons_stays_in_the_command() -> None:
    date = DatetimeMS(2**62)
    assert encrypted_operation._fields_of(bson.encode({"find": "c", "comment": date}))["comment"] == date

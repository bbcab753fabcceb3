"""Automatic encryption without a server: errors of mongocryptd, results that cannot be decrypted,
and a missing library.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import bson
import pytest
from bson import DatetimeMS
from bson.raw_bson import RawBSONDocument
from gevent import GreenletExit

pytest.importorskip("pymongocrypt", reason="pymongocrypt is not installed")

from gmongo._encryption import automatic, library
from gmongo._encryption.library import require_library
from gmongo._encryption.operation import EncryptedOperation, EncryptingExecutor
from gmongo.cmap.hello import Hello
from gmongo.encryption import ClientEncryption
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import ConfigurationError, EncryptionError, ServerSelectionTimeoutError
from gmongo.events.command import CommandEvents
from gmongo.execution.executor import Executor
from gmongo.execution.operation import OperationContext
from gmongo.execution.retry import ExecutionSettings
from gmongo.operations.run_command import RunCommand

COMMAND = bson.encode({"find": "c", "filter": {"ssn": "s3cret"}, "$db": "db"})


@pytest.mark.parametrize("error", [ValueError("no"), GreenletExit()])
def test_cursor_of_undecryptable_result_is_reaped(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    encrypter: Any = Mock()
    executor = EncryptingExecutor(Mock(epoch=0), ExecutionSettings(), CommandEvents((), silent=False), encrypter)
    runs: list[Any] = []
    monkeypatch.setattr(Executor, "run", lambda self, *arguments: runs.append(arguments) or "result")
    reap = Mock()
    monkeypatch.setattr(EncryptingExecutor, "reap", reap)
    operation: Any = Mock(context=OperationContext("db"))
    assert executor.run(operation, None, 7.0) == "result"
    assert runs[0][1:] == (None, 7.0) and not reap.called
    encrypted_operation = runs[0][0]
    monkeypatch.setattr(type(encrypted_operation), "decrypt_result", Mock(side_effect=error))
    with pytest.raises(type(error)):
        executor.run(operation)
    reap.assert_called_once_with(operation, "result")
    assert runs[1][1:] == (None, None)


def test_missing_encryption_library_raises_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    require_library()
    for error in (AttributeError("x"), OSError("x"), RuntimeError("x")):
        monkeypatch.setattr(library, "lib", SimpleNamespace(mongocrypt_version=Mock(side_effect=error)))
        with pytest.raises(ConfigurationError, match=r"^client-side encryption needs libmongocrypt: x$") as caught:
            require_library()
        assert caught.value.__cause__ is error
    monkeypatch.setattr(library, "import_error", missing := ImportError("none"))
    users = (require_library, lambda: AutoEncryptionOpts({}, "a.b"), lambda: ClientEncryption({}, "a.b", None, None))  # type: ignore[arg-type]
    message = "client-side encryption needs pymongocrypt, which cannot be imported (none)"
    for use in users:
        with pytest.raises(ConfigurationError) as caught:
            use()
        assert caught.value.__cause__ is missing
        assert str(caught.value) == f"{message}: pip install 'gmongo[encryption]'"


def test_error_of_mongocryptd_contains_only_names_and_schema() -> None:
    command = {"find": "coll-7", "filter": {"a": "filter-7"}, "$db": "db-7"}
    schema_fields = {
        name: {"x": f"{name}-7"}
        for name in ("jsonSchema", "isRemoteSchema", "encryptionInformation", "csfleEncryptionSchemas")
    }
    raw = RawBSONDocument(bson.encode({**command, **schema_fields}))
    operation = automatic._AnalyseCommand(OperationContext("db"), raw)
    message = "coll-7 db-7 jsonSchema-7 isRemoteSchema-7 encryptionInformation-7 csfleEncryptionSchemas-7"
    assert operation.decode(bson.encode({"ok": 0, "errmsg": message, "code": 5}))["errmsg"] == message
    assert message not in operation.decode(bson.encode({"ok": 0, "errmsg": f"{message} filter-7", "code": 5}))["errmsg"]


def test_date_outside_of_python_range_stays_unchanged_in_command() -> None:
    date = DatetimeMS(2**62)
    encrypter: Any = Mock(encrypt=lambda _database, body, _deadline: body)
    operation = RunCommand(OperationContext("db"), {"ping": 1, "comment": date})
    assert EncryptedOperation(operation, encrypter, None).command(Hello({"ok": 1}, 0.0))["comment"] == date


@pytest.mark.parametrize("arguments", [["--idleShutdownTimeoutSecs=5"], ["--idleShutdownTimeoutSecs", "5"]])
def test_idle_timeout_in_arguments_of_mongocryptd_replaces_default(arguments: list[str]) -> None:
    options = AutoEncryptionOpts({}, "a.b", mongocryptd_spawn_path="d", mongocryptd_spawn_args=arguments)
    assert (options._mongocryptd_command, options._kms_providers) == (["d", *arguments], {})


def test_request_without_mongocryptd_or_without_client_raises_encryption_error() -> None:
    encrypter: Any = Mock(_mongocryptd=None, _client=lambda: None)
    with pytest.raises(EncryptionError, match=r"^libmongocrypt requests an analysis, but the options disable "):
        automatic.Encrypter.analyse(encrypter, "db", COMMAND)
    with pytest.raises(EncryptionError, match=r"^the client no longer exists$"):
        automatic.Encrypter._client_for_keys_and_schemas(encrypter)


@pytest.mark.parametrize("spawns", [False, True])
def test_selection_timeout_restarts_mongocryptd_unless_forbidden(monkeypatch: pytest.MonkeyPatch, spawns: bool) -> None:
    client, spawn = Mock(), Mock()
    client._executor.run.side_effect = [ServerSelectionTimeoutError("none"), b"reply"]
    monkeypatch.setattr(automatic.Mongocryptd, "_spawn", spawn)
    mongocryptd = automatic.Mongocryptd(Mock(_mongocryptd_bypass_spawn=not spawns), Mock(return_value=client))
    with pytest.MonkeyPatch.context() if spawns else pytest.raises(ServerSelectionTimeoutError):
        assert mongocryptd.analyse("db", COMMAND) == b"reply"
    assert (spawn.call_count, client._executor.run.call_count) == ((2, 2) if spawns else (0, 1))


def test_shell_that_event_loop_has_collected_ends_wait_for_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic.os, "posix_spawn", spawn := Mock(return_value=7))
    monkeypatch.setattr(automatic.os, "waitpid", Mock(side_effect=ChildProcessError))
    monkeypatch.setattr(automatic, "sleep", pytest.fail)
    automatic.spawn_detached(["mongocryptd", "--port"])
    arguments, streams = ["sh", "-c", '"$@" &', "sh", "mongocryptd", "--port"], spawn.call_args.kwargs["file_actions"]
    spawn.assert_called_once_with("/bin/sh", arguments, automatic.os.environ, file_actions=streams, setsid=True)
    assert [each[1:4] for each in streams] == [(number, "/dev/null", automatic.os.O_RDWR) for number in range(3)]

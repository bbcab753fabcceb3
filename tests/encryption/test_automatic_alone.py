"""Automatic encryption without a server: refusals, results that cannot be decrypted, and a missing library."""

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

from gmongo._encryption import library, query_analysis
from gmongo._encryption import operation as encrypted_operation
from gmongo._encryption.executor import EncryptingExecutor
from gmongo._encryption.library import require_library
from gmongo.errors import ConfigurationError
from gmongo.events.command import CommandEvents
from gmongo.execution.executor import Executor
from gmongo.execution.operation_context import OperationContext
from gmongo.execution.retry import ExecutionSettings

# mongocryptd


COMMAND = bson.encode({"find": "c", "filter": {"ssn": "s3cret"}, "$db": "db"})


def test_a_refusal_of_mongocryptd_shows_nothing_of_the_command() -> None:
    raw = RawBSONDocument(COMMAND)
    operation = query_analysis._Analyse(OperationContext("db"), raw)
    reply = bson.encode({"ok": 0, "errmsg": "it was s3cret", "code": 5})
    found = operation.decode(reply)
    assert "s3cret" not in str(found) and found["code"] == 5
    assert operation.result(found, ("h", 1)) == reply


# Beside it


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

"""Logs and spans contain only the beginning of large commands and replies, so that the event loop is
not blocked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.monitoring import CommandListener
from gmongo.testing import Deployment
from gmongo.wire.reply import Batch
from tests.telemetry.conftest import SpanCollector

TEXT_LENGTH = 100
DOCUMENT_COUNT = 4000


class CountedDocument(dict[str, Any]):
    """Document class that counts the calls of `items` on all its instances."""

    read_count = 0

    def items(self) -> Any:
        CountedDocument.read_count += 1
        return super().items()


class ReplyListener(CommandListener):
    def __init__(self) -> None:
        self.replies: list[Any] = []

    def started(self, event: Any) -> None: ...

    def succeeded(self, event: Any) -> None:
        self.replies.append(event.reply)

    def failed(self, event: Any) -> None: ...


class FormattingHandler(logging.Handler):
    """Log handler that formats each log record immediately, and stores the text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {getattr(record, 'structured', '')}")


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with Deployment.standalone() as started:
        yield started


@pytest.fixture
def command_log_lines() -> Iterator[list[str]]:
    """Set the command logger to the level DEBUG. Yield a list that records the logged lines."""
    logger, handler = logging.getLogger("gmongo.command"), FormattingHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture
def decoded_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that records the number of documents in each decoding step of a batch."""
    counts: list[int] = []
    decode_run, decode_documents = Batch.decode_run, Batch.documents

    def counted_run(self: Batch) -> Any:
        run = decode_run(self)
        counts.append(len(run))
        return run

    def counted_documents(self: Batch) -> Any:
        counts.append(len(decode_documents(self)))
        return decode_documents(self)

    monkeypatch.setattr(Batch, "decode_run", counted_run)
    monkeypatch.setattr(Batch, "documents", counted_documents)
    return counts


def observer_options(provider: Any) -> dict[str, dict[str, Any]]:
    tracing = {"enabled": True, "tracer_provider": provider, "query_text_max_length": TEXT_LENGTH}
    return {
        "spans": {"tracing": tracing},
        "slow operations": {
            "tracing": {"query_text_max_length": TEXT_LENGTH},
            "slow_operation_ms": 0,
        },
        "log": {},
        "all": {"tracing": tracing, "slow_operation_ms": 0},
    }


def documents() -> list[CountedDocument]:
    return [CountedDocument(_id=number, a="x" * 40, b={"c": [1, 2, 3]}) for number in range(DOCUMENT_COUNT)]


LARGE_COMMANDS: dict[str, Callable[[Any], object]] = {
    "insert_many": lambda collection: collection.insert_many(documents()),
    "update": lambda collection: collection.update_one({}, {"$set": {"a": documents()}}),
    "find": lambda collection: collection.find_one({"a": {"$in": documents()}}),
    "aggregate": lambda collection: list(collection.aggregate([{"$match": {"a": {"$in": documents()}}}])),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("observer", ["spans", "slow operations", "log", "all"])
@pytest.mark.parametrize("send_command", LARGE_COMMANDS.values(), ids=LARGE_COMMANDS.keys())
def test_text_of_large_command_reads_only_first_documents(
    observer: str,
    send_command: Callable[[Any], object],
    deployment: Deployment,
    spans: SpanCollector,
    request: pytest.FixtureRequest,
) -> None:
    command_log_lines = request.getfixturevalue("command_log_lines") if observer in ("log", "all") else None
    with MongoClient(deployment.uri, **observer_options(spans.provider)[observer]) as client:
        client.d.c.drop()
        CountedDocument.read_count = 0
        send_command(client.d.c)
        # For a text of 100 characters (spans, slow operations) or 1000 characters (log messages), the
        # driver reads few documents. The handler formats each log message as text and as a mapping.
        command_count = 4
        assert CountedDocument.read_count <= command_count * 2 * 50
    if command_log_lines is not None:
        assert any("..." in line for line in command_log_lines)
        assert max(map(len, command_log_lines)) < 6000


@pytest.mark.parametrize("observer", ["spans", "slow operations", "log", "all"])
def test_text_of_large_reply_decodes_only_first_documents(
    observer: str,
    deployment: Deployment,
    spans: SpanCollector,
    decoded_counts: list[int],
    request: pytest.FixtureRequest,
) -> None:
    with MongoClient(deployment.uri) as plain_client:
        plain_client.d.c.insert_many([{"_id": number, "a": "x" * 40} for number in range(DOCUMENT_COUNT)])
    command_log_lines = request.getfixturevalue("command_log_lines") if observer in ("log", "all") else None
    with MongoClient(deployment.uri, **observer_options(spans.provider)[observer]) as client:
        cursor = client.d.c.find(batch_size=DOCUMENT_COUNT)
        next(cursor)
        assert max(decoded_counts) < 1000
        assert sum(decoded_counts) < 3000
        assert len(list(cursor)) == DOCUMENT_COUNT - 1
    if command_log_lines is not None:
        assert any('"firstBatch": [{"_id": 0' in line for line in command_log_lines)


def test_command_listener_receives_complete_large_reply(deployment: Deployment, command_log_lines: list[str]) -> None:
    listener = ReplyListener()
    with MongoClient(deployment.uri, event_listeners=[listener]) as client:
        client.d.c.insert_many([{"_id": number, "a": "x" * 40} for number in range(DOCUMENT_COUNT)])
        next(client.d.c.find(batch_size=DOCUMENT_COUNT))
    (reply,) = [each for each in listener.replies if "cursor" in each]
    assert len(reply["cursor"]["firstBatch"]) == DOCUMENT_COUNT

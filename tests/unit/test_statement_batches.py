"""A write message contains as many statements as fit, and at least one statement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import bson
import pytest
from bson.codec_options import DEFAULT_CODEC_OPTIONS

from gmongo._server_facts import sizes
from gmongo.cmap.hello import Hello
from gmongo.errors import DocumentTooLarge
from gmongo.operations.write import _MESSAGE_OVERHEAD, Statements

DOCUMENTS = [{"_id": 0, "x": "y" * length} for length in (3, 0, 10, 4, 4, 1, 30, 2)]
SIZES = [len(bson.encode(each)) for each in DOCUMENTS]


def server_limits(
    statement_bytes: int, max_statements: int = 100, max_statement_size: int = 1 << 20, max_document_size: int = 1 << 20
) -> Any:
    """Return the limits of a server. The arguments do not include the overhead of a command."""
    return SimpleNamespace(
        max_batch_size=statement_bytes + sizes.COMMAND_OVERHEAD,
        max_write_batch_size=max_statements,
        max_message_size=max_statement_size + sizes.COMMAND_OVERHEAD,
        max_bson_size=max_document_size,
    )


def counts_per_message(hello: Hello, statements: Statements) -> list[int]:
    counts = []
    start = 0
    while True:
        documents, encoded_documents = statements.take(hello)
        if not documents:
            return counts
        assert documents == DOCUMENTS[start : start + len(documents)]
        assert encoded_documents == [bson.encode(each) for each in documents]
        counts.append(len(documents))
        start += len(documents)


def expected_counts(statement_bytes: int, max_statements: int) -> list[int]:
    counts, remaining = [], [*SIZES]
    while remaining:
        fitting = 1
        while fitting < min(max_statements, len(remaining)) and sum(remaining[: fitting + 1]) <= statement_bytes:
            fitting += 1
        counts.append(fitting)
        remaining = remaining[fitting:]
    return counts


@pytest.mark.parametrize("max_statements", [1, 2, 3, 8, 100])
def test_message_contains_as_many_statements_as_fit(max_statements: int) -> None:
    for statement_bytes in range(sum(SIZES) + 2):
        statements = Statements("insert", DOCUMENTS, DEFAULT_CODEC_OPTIONS)
        assert counts_per_message(server_limits(statement_bytes, max_statements), statements) == expected_counts(
            statement_bytes, max_statements
        ), statement_bytes


@pytest.mark.parametrize("excess_bytes", [0, 1])
def test_large_command_reduces_space_for_statements(excess_bytes: int) -> None:
    hello = server_limits(sum(SIZES))
    command_size = hello.max_batch_size - sum(SIZES[:2]) - _MESSAGE_OVERHEAD + excess_bytes
    statements = Statements("insert", DOCUMENTS, DEFAULT_CODEC_OPTIONS)
    assert statements.take(hello, command_size)[0] == DOCUMENTS[: 2 - excess_bytes]


@pytest.mark.parametrize("excess_bytes", [0, 1])
def test_statement_above_message_size_raises_document_too_large(excess_bytes: int) -> None:
    message_size = SIZES[0] - excess_bytes
    statements = Statements("insert", DOCUMENTS[:1], DEFAULT_CODEC_OPTIONS)
    if not excess_bytes:
        assert statements.take(server_limits(0, max_statement_size=message_size))[0] == DOCUMENTS[:1]
        return
    with pytest.raises(
        DocumentTooLarge, match=rf"^BSON document too large \({SIZES[0]} bytes\) - the connected server"
    ):
        statements.take(server_limits(0, max_statement_size=message_size))


@pytest.mark.parametrize("has_reply", [True, False])
@pytest.mark.parametrize("excess_bytes", [0, 1])
def test_too_large_document_raises_only_if_write_has_no_reply(excess_bytes: int, has_reply: bool) -> None:
    statements = Statements("insert", DOCUMENTS[:1], DEFAULT_CODEC_OPTIONS)
    statements.has_reply = has_reply
    hello = server_limits(1000, max_document_size=SIZES[0] - excess_bytes)
    if has_reply or not excess_bytes:
        assert statements.take(hello)[0] == DOCUMENTS[:1]
        return
    with pytest.raises(DocumentTooLarge):
        statements.take(hello)

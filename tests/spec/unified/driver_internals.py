"""Functions of the runner that read internals of the driver, or change settings of the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from gmongo.client_session import ClientSession
from gmongo.options import rules
from gmongo.sdam import monitor

_MIN_HEARTBEAT_SECONDS = 0.02


def transaction_state(session: ClientSession) -> str:
    """Return the name that the unified test format has for the transaction state of a session."""
    return session._state.transaction.state.name.lower().removesuffix("_empty")


def pinned_address(session: ClientSession) -> str | None:
    """Return the address of the mongos to which a session is pinned, or None."""
    address = session._state.transaction.pinned_address
    return None if address is None else "{}:{}".format(*address)


def is_pinned(session: ClientSession) -> bool:
    """Return True if a session is pinned to a mongos or a connection."""
    transaction = session._state.transaction
    return transaction.pinned_address is not None or transaction.pin is not None


def is_dirty(session: ClientSession) -> bool:
    return session._state.server_session.dirty


@contextmanager
def quick_heartbeats() -> Iterator[None]:
    """While the block runs, permit heartbeat intervals that are shorter than the minimum of
    500 ms.
    """
    with (
        patch.object(monitor, "MIN_HEARTBEAT_FREQUENCY", _MIN_HEARTBEAT_SECONDS),
        patch.object(rules, "MIN_HEARTBEAT_SECONDS", _MIN_HEARTBEAT_SECONDS),
    ):
        yield


@contextmanager
def complete_documents_in_logs() -> Iterator[None]:
    """While the block runs, log complete documents.

    The runner parses the documents in log messages, and a truncated document is not valid Extended
    JSON.
    """
    with patch.dict("os.environ", MONGODB_LOG_MAX_DOCUMENT_LENGTH="100000"):
        yield

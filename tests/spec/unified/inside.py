"""What tests must see of the driver that its public interface does not show: the only place that looks inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from gmongo.client_session import ClientSession
from gmongo.options import rules
from gmongo.sdam import monitor

_LEAST_SECONDS = 0.02


def transaction_state(session: ClientSession) -> str:
    """The state of a session's transaction, as the tests write it."""
    return session._state.transaction.state.name.lower().removesuffix("_empty")


def pinned_address(session: ClientSession) -> str | None:
    """The mongos to which a session is pinned."""
    address = session._state.transaction.pinned_address
    return None if address is None else "{}:{}".format(*address)


def is_pinned(session: ClientSession) -> bool:
    """Whether a session is pinned to a mongos or to a connection."""
    transaction = session._state.transaction
    return transaction.pinned_address is not None or transaction.pin is not None


def is_dirty(session: ClientSession) -> bool:
    """Whether the session's server session is discarded rather than used again."""
    return session._state.server_session.dirty


@contextmanager
def quick_heartbeats() -> Iterator[None]:
    """Let clients check their servers much more often than the specification allows."""
    before = monitor.MIN_HEARTBEAT_FREQUENCY, rules.MIN_HEARTBEAT_SECONDS
    monitor.MIN_HEARTBEAT_FREQUENCY = rules.MIN_HEARTBEAT_SECONDS = _LEAST_SECONDS
    try:
        yield
    finally:
        monitor.MIN_HEARTBEAT_FREQUENCY, rules.MIN_HEARTBEAT_SECONDS = before


@contextmanager
def whole_documents_in_logs() -> Iterator[None]:
    """Do not cut the documents in log messages, which would not be Extended JSON any more."""
    with patch.dict("os.environ", MONGODB_LOG_MAX_DOCUMENT_LENGTH="100000"):
        yield

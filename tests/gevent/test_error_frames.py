"""Tests that Python releases the frames of a handled error without the garbage collector.

A frame in the traceback must not refer to the error, because a reference cycle keeps frames alive.
"""

from __future__ import annotations

import _socket
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import gevent
import pytest

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.cmap.wait_queue import WaitQueue
from gmongo.engines.read_ahead import ReadAhead
from gmongo.errors import NetworkTimeout
from gmongo.wire import connect as connecting
from gmongo.wire.transport import TransportError

pytestmark = pytest.mark.usefixtures("collector_off")


class TimeLimitError(Exception):
    pass


def raise_eviction() -> None:
    queue: WaitQueue[str] = WaitQueue()
    waiter = queue.join()
    queue.evict(TimeLimitError)
    waiter.sleep(None, AssertionError)


def raise_read_ahead_error() -> None:
    read_ahead: Any = SimpleNamespace(_arrived_replies=[], _error=TimeLimitError(), _operation=None)
    ReadAhead.next(read_ahead, None)


def connect_with(getaddrinfo: Callable[..., Any]) -> Callable[[], None]:
    """Return a function that connects to a host name, which `getaddrinfo` resolves."""

    def connect() -> None:
        hub = SimpleNamespace(resolver=SimpleNamespace(getaddrinfo=getaddrinfo))
        with patch.object(connecting, "get_hub", lambda: hub):
            connecting.connect(("no.example", 1), lambda transport: None)

    return connect


def fail_to_resolve(*_: Any) -> None:
    raise _socket.gaierror(-2, "unknown")


def establish_after_deadline() -> None:
    pool = Mock(_delivery=Mock(__enter__=Mock(), __exit__=Mock(return_value=None)))
    pool._handle_failure = lambda *arguments: Pool._handle_failure(pool, *arguments)  # a mock would store the error
    Pool._establish(pool, Connection(("h", 1)), 0.0)


def fail_in_encryption_step() -> None:
    from gmongo._encryption.context import Context

    def fail() -> None:
        raise TimeLimitError

    with Context(Mock(), lambda new: Mock(), 0) as context:
        context.step(fail)


FAILING_CALLS: dict[str, tuple[Callable[[], None], Any]] = {
    "eviction": (raise_eviction, TimeLimitError),
    "read-ahead": (raise_read_ahead_error, TimeLimitError),
    "host without address": (connect_with(lambda *_: []), TransportError),
    "unknown host": (connect_with(fail_to_resolve), TransportError),
    "deadline": (establish_after_deadline, NetworkTimeout),
}


class Request:
    """An object in a local variable of the application. The tests check its release."""


def releases_locals(call: Callable[[], None], error: Any) -> bool:
    def use(request: Request) -> None:
        call()

    def run() -> weakref.ref[Request]:
        request = Request()
        reference = weakref.ref(request)
        try:
            use(request)
        except error:
            return reference
        raise AssertionError("the call raised no error")

    return gevent.spawn(run).get()() is None


@pytest.mark.parametrize("case", FAILING_CALLS)
def test_handled_error_releases_locals(case: str) -> None:
    assert releases_locals(*FAILING_CALLS[case])


def test_handled_encryption_error_releases_locals() -> None:
    pytest.importorskip("pymongocrypt")
    from gmongo.errors import EncryptionError

    assert releases_locals(fail_in_encryption_step, EncryptionError)

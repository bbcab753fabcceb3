"""Tests that Python releases the frames of a handled error without the garbage collector.

No frame in the traceback may refer to the error, because a reference cycle would keep the frames
alive.
"""

from __future__ import annotations

import _socket
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import gevent
import pytest
from gevent import Timeout

from gmongo.cmap.connection import Connection
from gmongo.cmap.establishing import Establisher
from gmongo.cmap.wait_queue import WaitQueue
from gmongo.errors import NetworkTimeout, OperationFailure
from gmongo.events.command import CommandEvents
from gmongo.execution.executor import Executor
from gmongo.execution.reply_errors import raise_error_of
from gmongo.execution.retry import ExecutionSettings
from gmongo.wire import connect as connecting
from gmongo.wire.timeout import interrupt_after
from gmongo.wire.transport import TransportError

pytestmark = pytest.mark.usefixtures("collector_off")


class TimeLimitError(Exception):
    pass


def raise_eviction() -> None:
    queue: WaitQueue[str] = WaitQueue()
    waiter = queue.join()
    WaitQueue.evict(queue.detach(), TimeLimitError)
    waiter.sleep(None, AssertionError)


def raise_wait_timeout() -> None:
    WaitQueue[str]().join().sleep(0, TimeLimitError)


def raise_timeout_of_application() -> None:
    waiter = WaitQueue[str]().join()
    with Timeout(0.001, TimeLimitError()):
        waiter.sleep(5, AssertionError)


def raise_command_error() -> None:
    raise_error_of({"ok": 0, "errmsg": "no"}, None)


def raise_expired_limit() -> None:
    interrupt_after(0, TimeLimitError())


def connect_to_closed_port() -> None:
    connecting.connect(("127.0.0.1", 1), lambda transport: None)


def connect_to_host_without_address() -> None:
    resolver = SimpleNamespace(getaddrinfo=lambda *_: [])
    hub, connecting.get_hub = connecting.get_hub, lambda: SimpleNamespace(resolver=resolver)
    try:
        connecting.connect(("no.example", 1), lambda transport: None)
    finally:
        connecting.get_hub = hub


def connect_to_unknown_host() -> None:
    def fail(*_: Any) -> None:
        raise _socket.gaierror(-2, "unknown")

    hub, connecting.get_hub = connecting.get_hub, lambda: SimpleNamespace(resolver=SimpleNamespace(getaddrinfo=fail))
    try:
        connecting.connect(("no.example", 1), lambda transport: None)
    finally:
        connecting.get_hub = hub


def establish_after_deadline() -> None:
    establisher = Establisher(Mock(), Mock(), Mock(__enter__=Mock(), __exit__=Mock(return_value=None)), Mock())
    establisher.establish(Connection(("h", 1)), 0.0)


def fail_in_encryption_step() -> None:
    from gmongo._encryption.context import Context

    def fail() -> None:
        raise TimeLimitError

    with Context(Mock(), lambda new: Mock(), 0) as context:
        context.step(fail)


ERRORS: dict[Callable[[], None], Any] = {
    raise_eviction: TimeLimitError,
    raise_wait_timeout: TimeLimitError,
    raise_timeout_of_application: TimeLimitError,
    raise_command_error: OperationFailure,
    raise_expired_limit: TimeLimitError,
    connect_to_closed_port: TransportError,
    connect_to_host_without_address: TransportError,
    connect_to_unknown_host: TransportError,
    establish_after_deadline: NetworkTimeout,
}


class Request:
    """An object in a local variable of the application, whose release the tests check."""


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


@pytest.mark.parametrize("call", ERRORS, ids=lambda call: call.__name__)
def test_handled_error_releases_locals(call: Callable[[], None]) -> None:
    assert releases_locals(call, ERRORS[call])


def test_handled_encryption_error_releases_locals() -> None:
    pytest.importorskip("pymongocrypt")
    from gmongo.errors import EncryptionError

    assert releases_locals(fail_in_encryption_step, EncryptionError)


def sleep_with_limit() -> None:
    with interrupt_after(60, TimeLimitError()):
        gevent.sleep(60)


def wait_in_backoff() -> None:
    executor = Executor(Mock(epoch=0), ExecutionSettings(), CommandEvents((), silent=False))
    executor._wait(60, Mock())


@pytest.mark.parametrize("call", [sleep_with_limit, wait_in_backoff], ids=lambda call: call.__name__)
def test_killed_greenlet_without_error_handler_releases_locals(call: Callable[[], None]) -> None:
    """The greenlet refers to the exception, and the exception to its frames.

    No frame may refer to the greenlet, because a cycle would keep the frames alive.
    """

    def use(request: Request) -> None:
        call()

    request = Request()
    reference = weakref.ref(request)
    waiting = gevent.spawn(use, request)
    del request
    gevent.sleep(0)
    waiting.kill()
    del waiting
    gevent.sleep(0)  # the hub releases its callback, which refers to the greenlet
    assert reference() is None

"""An error that was handled is gone at once, with the frames that it went through: none of them refers to it. Otherwise
locals of the application would live on until the garbage collector comes.
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


class TooLate(Exception):
    pass


def evicted() -> None:
    queue: WaitQueue[str] = WaitQueue()
    waiter = queue.join()
    WaitQueue.evict(queue.detach(), TooLate)
    waiter.sleep(None, AssertionError)


def timed_out() -> None:
    WaitQueue[str]().join().sleep(0, TooLate)


def broken_off() -> None:
    waiter = WaitQueue[str]().join()
    with Timeout(0.001, TooLate()):
        waiter.sleep(5, AssertionError)


def refused() -> None:
    raise_error_of({"ok": 0, "errmsg": "no"}, None)


def no_time_is_left() -> None:
    interrupt_after(0, TooLate())


def a_port_that_is_closed() -> None:
    connecting.connect(("127.0.0.1", 1), lambda transport: None)


def a_host_without_an_address() -> None:
    resolver = SimpleNamespace(getaddrinfo=lambda *_: [])
    hub, connecting.get_hub = connecting.get_hub, lambda: SimpleNamespace(resolver=resolver)
    try:
        connecting.connect(("no.example", 1), lambda transport: None)
    finally:
        connecting.get_hub = hub


def a_host_that_is_not_known() -> None:
    def fail(*_: Any) -> None:
        raise _socket.gaierror(-2, "unknown")

    hub, connecting.get_hub = connecting.get_hub, lambda: SimpleNamespace(resolver=SimpleNamespace(getaddrinfo=fail))
    try:
        connecting.connect(("no.example", 1), lambda transport: None)
    finally:
        connecting.get_hub = hub


def establishing_without_time() -> None:
    establisher = Establisher(Mock(), Mock(), Mock(__enter__=Mock(), __exit__=Mock(return_value=None)), Mock())
    establisher.establish(Connection(("h", 1)), 0.0)


def a_step_that_fails() -> None:
    from gmongo._encryption.context import Context

    def fail() -> None:
        raise TooLate

    with Context(Mock(), lambda new: Mock(), 0) as context:
        context.step(fail)


ERRORS: dict[Callable[[], None], Any] = {
    evicted: TooLate,
    timed_out: TooLate,
    broken_off: TooLate,
    refused: OperationFailure,
    no_time_is_left: TooLate,
    a_port_that_is_closed: TransportError,
    a_host_without_an_address: TransportError,
    a_host_that_is_not_known: TransportError,
    establishing_without_time: NetworkTimeout,
}


class Request:
    """Something large of the application's."""


def goes_at_once(call: Callable[[], None], error: Any) -> bool:
    def use(request: Request) -> None:
        call()

    def run() -> weakref.ref[Request]:
        request = Request()
        reference = weakref.ref(request)
        try:
            use(request)
        except error:
            return reference
        raise AssertionError("nothing was raised")

    return gevent.spawn(run).get()() is None


@pytest.mark.parametrize("call", ERRORS, ids=lambda call: call.__name__)
def test_an_error_leaves_nothing(call: Callable[[], None]) -> None:
    assert goes_at_once(call, ERRORS[call])


def test_an_error_of_encryption_leaves_nothing() -> None:
    pytest.importorskip("pymongocrypt")
    from gmongo.errors import EncryptionError

    assert goes_at_once(a_step_that_fails, EncryptionError)


def under_a_limit() -> None:
    with interrupt_after(60, TooLate()):
        gevent.sleep(60)


def between_two_tries() -> None:
    executor = Executor(Mock(epoch=0), ExecutionSettings(), CommandEvents((), silent=False))
    executor._wait(60, Mock())


@pytest.mark.parametrize("call", [under_a_limit, between_two_tries], ids=lambda call: call.__name__)
def test_a_greenlet_that_was_killed_leaves_nothing(call: Callable[[], None]) -> None:
    """It keeps what has ended it, with its frames, which must not keep the greenlet."""

    def use(request: Request) -> None:
        call()

    request = Request()
    reference = weakref.ref(request)
    waiting = gevent.spawn(use, request)
    del request
    gevent.sleep(0)
    waiting.kill()
    del waiting
    gevent.sleep(0)  # which lets go of what has waited for its end
    assert reference() is None

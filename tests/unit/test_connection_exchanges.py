"""Exchanges of a connection on a mock transport, and the connection state after each exchange."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import bson
import gevent
import pytest
from bson import DatetimeMS
from bson.errors import InvalidBSON
from gevent import GreenletExit

from gmongo.cmap import connecting
from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.handshake import send_hello
from gmongo.cmap.hello import Hello
from gmongo.cmap.server_connection import ServerConnection
from gmongo.errors import AutoReconnect, InvalidOperation, NetworkTimeout, OperationFailure, ProtocolError
from gmongo.wire.compression import make_compressor
from gmongo.wire.message import OP_MSG, encode_op_msg
from gmongo.wire.reply import is_well_formed
from gmongo.wire.tls import TlsTransport
from gmongo.wire.transport import TransportError
from tests.support.cases import with_cases

REPLY = bson.encode({"ok": 1})
REQUEST = encode_op_msg(5, 0, bson.encode({"ping": 1}))


def op_msg_payload(body: bytes = REPLY, flags: int = 0) -> memoryview:
    return memoryview(struct.pack("<IB", flags, 0) + body)


def connection_with(**method_results: Any) -> tuple[Connection, Any]:
    """Return a connection and its mock transport. The methods of the transport return the given
    values, or raise the given errors.
    """
    defaults = {"closed": False, "out_of_step": False, "max_message_size": 1000}
    transport = Mock(**defaults)
    transport.release.return_value = True
    transport.round_trip.return_value = REPLY
    for name, outcome in method_results.items():
        if isinstance(outcome, BaseException):
            getattr(transport, name).side_effect = outcome
        else:
            getattr(transport, name).return_value = outcome
    connection = Connection(("h", 1), 5.0)
    connection.attach(transport)
    return connection, transport


def test_immediate_reply_leaves_connection_usable() -> None:
    connection, transport = connection_with()
    assert connection.exchange(5, REQUEST, None, bson.decode) == {"ok": 1}
    transport.round_trip.assert_called_once_with(REQUEST, 5)
    assert connection.usable and not transport.release.called
    assert connection._limit is None
    connection.exchange(5, REQUEST, 10, bson.decode)
    limit = connection._limit
    connection.exchange(5, REQUEST, 10, bson.decode)
    assert connection._limit is limit is not None and limit._greenlet is None
    connection.close()
    assert limit._timer is None and transport.close.called


@with_cases
@pytest.mark.parametrize("transport_state", ["in step", "out of step", "closed"])
def test_failed_exchange_breaks_connection(
    transport_error: BaseException, error_class: Any, is_unanswered: bool, transport_state: str
) -> None:
    connection, transport = connection_with(round_trip=transport_error)
    transport.out_of_step, transport.closed = (
        transport_state == "out of step",
        transport_state == "closed",
    )
    with pytest.raises(error_class or type(transport_error)) as caught:
        connection.exchange(5, REQUEST, None, bson.decode)
    if isinstance(transport_error, TransportError):
        assert str(caught.value) == "h:1: reset" and caught.value.__cause__ is transport_error
    elif error_class is ProtocolError:
        assert str(caught.value) == f"h:1: {transport_error}"
    elif error_class is not None:
        assert caught.value is transport_error
    assert connection.mid_message and not connection.usable
    assert connection.unanswered_request_id == (5 if is_unanswered and transport_state == "in step" else None)


def test_connection_expects_no_late_reply_after_received_reply_with_error(monkeypatch: pytest.MonkeyPatch) -> None:
    connection, _ = connection_with(round_trip=None, receive=(9, 5, OP_MSG, op_msg_payload()))
    monkeypatch.setattr("gmongo.cmap.server_connection.decode_reply", Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        connection.exchange(5, REQUEST, None, bson.decode)
    assert connection.unanswered_request_id is None and not connection.usable


def test_wait_for_late_reply_does_not_keep_event_loop_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    connection, _ = connection_with(receive=(9, 5, OP_MSG, op_msg_payload()))
    connection.unanswered_request_id = 5
    connection.expect_late_reply(Mock(), True)
    limits: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        "gmongo.cmap.connection.interrupt_after", lambda *arguments: limits.append(arguments) or nullcontext()
    )
    connection.read_late_reply(3.0, 100)
    assert [(seconds, ref) for seconds, _, ref in limits] == [(3.0, False)]


@pytest.mark.parametrize("method", ["interrupt", "mark_forked", "close"])
def test_connecting_connection_passes_its_end_to_race(method: str) -> None:
    connection = Connection(("h", 1))
    connection.race = Mock()
    getattr(connection, method)(*([] if method == "close" else [AutoReconnect("end")]))
    getattr(connection.race, method).assert_called_once()


@pytest.mark.parametrize("uses_proxy", [False, True])
def test_proxy_and_tls_begin_stages_of_connect_timeout(uses_proxy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stages, proxy = Mock(), object() if uses_proxy else None
    monkeypatch.setattr(connecting, "_connect_stream", lambda *_: Mock(spec=TlsTransport))
    monkeypatch.setattr(connecting, "connect_through", stages.connect_through)
    connecting.connect(Connection(("h", 1)), Mock(proxy=proxy), stages, stages)  # type: ignore[arg-type]
    names = ["begin", "begin_stage"] + ["connect_through", "begin", "begin_stage"] * uses_proxy
    assert [name for name, *_ in stages.mock_calls] == names


@pytest.mark.parametrize("method", ["attach", "attach_race"])
def test_interruption_of_name_lookup_applies_to_later_socket(method: str) -> None:
    connection, socket = Connection(("h", 1)), Mock()
    connection.interrupt(AutoReconnect("end"))
    with pytest.raises(AutoReconnect) as caught:
        connection.send([], None)
    assert str(caught.value) == "end"
    getattr(connection, method)(socket)
    assert str(socket.interrupt.call_args.args[0]) == "end"


@pytest.mark.parametrize("is_establishing", [False, True])
def test_late_timer_asks_transport_for_result_of_stage(is_establishing: bool) -> None:
    connection, transport = connection_with(has_arrived=False)
    connection.progress = Mock(has_result=lambda each: each is not transport) if is_establishing else None
    assert connection.has_arrived() is not is_establishing


@pytest.mark.parametrize("seconds", [0, -1])
@pytest.mark.parametrize("method", ["exchange", "next_reply", "send"])
def test_expired_timeout_raises_before_request_is_sent(seconds: float, method: str) -> None:
    connection, transport = connection_with()
    with pytest.raises(NetworkTimeout) as caught:
        if method == "exchange":
            connection.exchange(5, REQUEST, seconds, bson.decode)
        elif method == "send":
            connection.send(REQUEST, seconds)
        else:
            connection.next_reply(seconds, bson.decode)
    assert str(caught.value).endswith("ended before the exchange)")
    assert not transport.round_trip.called and not transport.send.called and not transport.receive.called
    if method == "exchange":
        assert connection.usable


@pytest.mark.parametrize("transport_error", [TransportError("reset"), GreenletExit()])
def test_failed_send_leaves_connection_mid_message(transport_error: BaseException) -> None:
    connection, transport = connection_with()
    connection.send(REQUEST, None)
    transport.send.assert_called_once_with(REQUEST)
    assert connection.usable
    transport.send.side_effect = transport_error
    with pytest.raises(AutoReconnect if isinstance(transport_error, TransportError) else GreenletExit):
        connection.send(REQUEST, None)
    assert connection.mid_message
    assert (connection.error is not None) is isinstance(transport_error, TransportError)


@pytest.mark.parametrize("ref", [False, True])
def test_time_limit_of_send_keeps_event_loop_alive_only_if_connection_does(ref: bool) -> None:
    connection, transport = connection_with()
    connection.set_ref(ref)
    counts, loop = [gevent.get_hub().loop.activecnt], gevent.get_hub().loop
    transport.send.side_effect = lambda _: counts.append(loop.activecnt)
    connection.send(REQUEST, 5.0)
    assert counts[1] - counts[0] == ref


def test_requests_are_compressed_after_negotiation() -> None:
    connection, transport = connection_with()
    hello = Hello({"maxMessageSizeBytes": 100}, 0.0)
    connection.store_hello(hello, make_compressor("zlib", -1))
    assert connection.hello is hello
    transport.set_max_message_size.assert_called_once_with(100 + 16 * 1024)
    connection.exchange(5, REQUEST, None, bson.decode)
    connection.send(REQUEST, None)
    for request_buffers in (transport.round_trip.call_args.args[0], transport.send.call_args.args[0]):
        assert struct.unpack_from("<i", request_buffers[0], 12)[0] == 2012
    connection._compressor = SimpleNamespace(id=2, compress=Mock(side_effect=ValueError("no")))  # type: ignore[assignment]
    with pytest.raises(ValueError, match="no"):
        connection.exchange(5, REQUEST, None, bson.decode)
    assert transport.out_of_step is True and connection.mid_message


@pytest.mark.parametrize(
    "body", [b"\x06\x00\x00\x00\x02\x00", bson.encode({"x": "ä"}).replace("ä".encode(), b"\xff\xfe")]
)
@pytest.mark.parametrize("read_path", ["immediate", "pieces", "next_reply"])
def test_only_reply_that_no_codec_options_can_decode_makes_connection_unusable(body: bytes, read_path: str) -> None:
    connection, transport = connection_with(round_trip=body if read_path == "immediate" else None)
    transport.receive.return_value = (9, 5, OP_MSG, op_msg_payload(body))
    with pytest.raises(InvalidBSON):
        if read_path == "next_reply":
            connection.next_reply(None, bson.decode)
        else:
            connection.exchange(5, REQUEST, None, bson.decode)
    assert connection.usable is (body[4] == 2 and len(body) > 6)


def test_exchange_without_transport_raises_auto_reconnect() -> None:
    connection = Connection(("h", 1))
    with pytest.raises(AutoReconnect, match=r"^h:1: connection is not open$"):
        connection.exchange(5, REQUEST, None, bson.decode)
    connection.close()
    connection.set_ref(False)
    assert connection.ref is False and not connection.has_socket
    assert repr(ServerConnection(("h", 1))) == "<Connection 0 to h:1>"


def test_connection_keeps_first_error() -> None:
    connection, _ = connection_with()
    first, second = AutoReconnect("first"), AutoReconnect("second")
    connection.record_failure(first)
    assert connection.error is None
    connection.mid_message = True
    for error in (first, second):
        connection.record_failure(error)
        assert str(connection.error) == "first"
    connection.mark_unusable(second)
    assert str(connection.error) == "first"
    other_connection, _ = connection_with()
    other_connection.mark_unusable(second)
    assert str(other_connection.error) == "second" and other_connection.error is not second


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("unanswered", [None, 5])
def test_connection_expects_late_reply_only_if_operation_is_unanswered(
    purpose: Purpose, unanswered: int | None
) -> None:
    connection, _ = connection_with()
    connection.purpose, connection.unanswered_request_id = purpose, unanswered
    connection.expect_late_reply(callback := Mock(), True)
    is_expected = unanswered is not None and purpose is Purpose.OTHER
    assert (connection.late_reply_handler, connection.reply_is_due) == (
        callback if is_expected else None,
        is_expected,
    )


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_only_interrupted_reauthentication_sets_error(is_interrupted: bool) -> None:
    connection, _ = connection_with()
    with pytest.raises(
        InvalidOperation,
        match="cannot reauthenticate, because the connection has never authenticated",
    ):
        connection.reauthenticate()
    connection.authentication = Mock()
    connection.unanswered_request_id = 5
    if not is_interrupted:
        connection.reauthenticate(3.0)
        assert connection.error is None and connection.unanswered_request_id == 5
    else:
        connection.authentication.reauthenticate.side_effect = GreenletExit("x")
        with pytest.raises(GreenletExit):
            connection.reauthenticate(3.0)
        assert isinstance(connection.error, GreenletExit) and connection.unanswered_request_id is None
    connection.authentication.reauthenticate.assert_called_once_with(3.0)


@pytest.mark.parametrize(("name", "opcode"), [("hello", OP_MSG), ("isMaster", 2004)])
def test_hello_uses_op_msg_and_legacy_hello_uses_op_query(name: str, opcode: int) -> None:
    connection = Mock()
    connection.exchange.return_value = {"ok": 1}
    send_hello(connection, {name: 1}, 3.0)
    request_id, buffers, timeout, _decode = connection.exchange.call_args.args
    header = struct.unpack_from("<iiii", b"".join(buffers))
    assert (header[1], header[3], timeout) == (request_id, opcode, 3.0)
    assert (b"$db" in b"".join(buffers)) is (name == "hello")


def test_error_of_failed_hello_does_not_quote_secret_of_authentication() -> None:
    connection = Mock(exchange=lambda *_: {"ok": 0, "errmsg": "no user with t0ken-secret"})
    command = {"hello": 1, "speculativeAuthenticate": {"saslStart": 1, "payload": b"\x00ann\x00t0ken-secret"}}
    with pytest.raises(OperationFailure, match=r"^message withheld"):
        send_hello(connection, command, 3.0)


def test_late_reply_timeout_error_names_drain_late_replies_option() -> None:
    connection, transport = connection_with()
    transport.receive.side_effect = lambda *_: gevent.sleep(60)
    connection.unanswered_request_id, connection.late_reply_handler = 5, Mock()
    with pytest.raises(NetworkTimeout, match="drainLateRepliesMS"):
        connection.read_late_reply(0.001, 100)


@pytest.mark.parametrize(
    ("body", "is_well_formed_body"),
    [
        (bson.encode({"a": 1}), True),
        (bson.encode({"a": DatetimeMS(2**62)}), True),
        (bson.encode({"a": "x?y"}).replace(b"x?y", b"x\xffy"), True),
        (b"\x0c\x00\x00\x00\x77a\x00" + bytes(5), False),
        (b"\x05\x00\x00\x00", False),
    ],
)
def test_body_is_well_formed_if_any_codec_options_can_decode_it(body: bytes, is_well_formed_body: bool) -> None:
    assert is_well_formed(body) is is_well_formed_body


@with_cases
def test_connect_error_has_overload_labels_unless_cause_excludes_overload(cause: Any, is_labelled: bool) -> None:
    error, transport_error = AutoReconnect("x"), TransportError("y")
    error.__cause__, transport_error.__cause__ = transport_error, cause
    connecting.label_connect_error(error)
    assert error._error_labels == ({"SystemOverloadedError", "RetryableError"} if is_labelled else set())

"""Tests without servers: encryption contexts, state machine, cryptography, KMS requests, proxies."""

from __future__ import annotations

import ssl
from collections import deque
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, PropertyMock

import gevent
import pytest
from bson.errors import InvalidBSON
from gevent import GreenletExit

pytest.importorskip("pymongocrypt", reason="pymongocrypt is not installed")

from gmongo import _clock
from gmongo._encryption import connect_callback, hooks, kms
from gmongo._encryption.collections import _CreateStateCollection
from gmongo._encryption.connect_callback import HTTPProxyKMSConnect, KMSConnectContext
from gmongo._encryption.context import Context
from gmongo._encryption.explicit import ExplicitEncryption
from gmongo._encryption.handle import Handle, Settings
from gmongo._encryption.key_vault import split_namespace
from gmongo._encryption.kms import Kms
from gmongo._encryption.library import MongoCryptError, ffi, lib
from gmongo._encryption.machine import Machine, OnDemandCredentials
from gmongo.auth import http
from gmongo.errors import (
    AutoReconnect,
    ConfigurationError,
    EncryptionError,
    InvalidOperation,
    NetworkTimeout,
)
from gmongo.execution.operation import OperationContext
from tests.encryption.conftest import KMS_PROVIDERS
from tests.support.cases import with_cases

STATES = {
    "keys": lib.MONGOCRYPT_CTX_NEED_MONGO_KEYS,
    "collections": lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO,
    "collections of database": lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO_WITH_DB,
    "query analysis": lib.MONGOCRYPT_CTX_NEED_MONGO_MARKINGS,
}


@pytest.fixture
def other_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "database", PropertyMock(return_value="other"))


def machine_with_states(*states: int, **settings: Any) -> tuple[Machine, Any, Any, Any]:
    native, database, services = Mock(), Mock(), Mock()
    type(native).state = PropertyMock(side_effect=states)
    native.database = "db"
    options = Settings(kms_providers={"local": {}}, **settings)
    handle_: Any = Mock(settings=options)
    return Machine(handle_, database, services), native, database, services


@pytest.mark.parametrize("machine_state", STATES)
@pytest.mark.parametrize(
    "raised_error",
    [AutoReconnect("gone"), EncryptionError(ValueError("x")), ValueError("x"), GreenletExit()],
)
@pytest.mark.usefixtures("other_database")
def test_only_driver_error_in_state_machine_becomes_encryption_error(
    machine_state: str, raised_error: BaseException
) -> None:
    """Check that a `PyMongoError` becomes the cause of an `EncryptionError`.

    An `EncryptionError` and errors of other classes stay unchanged.
    """
    machine, native, database, _ = machine_with_states(STATES[machine_state])
    for each in (database.find_keys, database.list_collections, database.analyse):
        each.side_effect = raised_error
    with pytest.raises(BaseException) as caught:
        machine.run(lambda new: native, 0, None)
    if isinstance(raised_error, AutoReconnect):
        assert type(caught.value) is EncryptionError
        assert caught.value.cause is raised_error is caught.value.__cause__
    else:
        assert caught.value is raised_error
    assert native._close.call_count == 1


def test_done_state_returns_none_and_error_state_raises_encryption_error() -> None:
    machine, native, _, _ = machine_with_states(lib.MONGOCRYPT_CTX_DONE)
    assert machine.run(lambda new: native, 0, None) is None
    machine, native, _, _ = machine_with_states(lib.MONGOCRYPT_CTX_ERROR)
    native._raise_from_status.side_effect = MongoCryptError("refused")
    with pytest.raises(EncryptionError, match="refused"):
        machine.run(lambda new: native, 0, None)
    machine, native, _, _ = machine_with_states(4711)
    with pytest.raises(EncryptionError) as caught:
        machine.run(lambda new: native, 0, None)
    assert str(caught.value) == "libmongocrypt is in state 4711, which gmongo does not support"
    assert type(caught.value.cause) is ValueError


@pytest.mark.parametrize("error", [InvalidBSON("x"), EncryptionError(ValueError("x")), ValueError("x")])
def test_error_of_library_or_missing_result_raises_encryption_error(error: Exception) -> None:
    with pytest.raises((InvalidBSON, EncryptionError)) as caught:
        Context(Mock(), Mock(), 0).step(Mock(side_effect=error))
    assert (caught.value.cause if type(error) is ValueError else caught.value) is error
    explicit: Any = Mock(_machine=Mock(run=lambda *_, **__: None))
    with pytest.raises(EncryptionError, match=r"^libmongocrypt returned no result$"):
        ExplicitEncryption._run(explicit, Mock(), 0)


def binary(data: bytes) -> Any:
    """Return a libmongocrypt binary for `data`, and the memory to which the binary refers."""
    memory = ffi.new("uint8_t[]", data or b"\0")
    binary_ = lib.mongocrypt_binary_new_from_data(memory, len(data))
    return ffi.gc(binary_, lib.mongocrypt_binary_destroy), memory


def new_status() -> Any:
    return ffi.gc(lib.mongocrypt_status_new(), lib.mongocrypt_status_destroy)


def test_error_in_cryptography_callback_has_class_name_without_data() -> None:
    (key, _1), (iv, _2), (source, _3), (target, _4) = map(binary, (b"short", b"iv", b"s3cret", bytes(64)))
    status, length = new_status(), ffi.new("uint32_t*")
    assert not hooks._CBC_ENCRYPT(ffi.NULL, key, iv, source, target, ffi.new("uint32_t*"), status)
    assert not lib.mongocrypt_status_ok(status)
    assert lib.mongocrypt_status_type(status) == lib.MONGOCRYPT_STATUS_ERROR_CLIENT
    assert lib.mongocrypt_status_code(status) == 1
    assert ffi.string(lib.mongocrypt_status_message(status, length)) == b"ValueError in the cryptography"


def test_forked_child_opens_a_new_library_handle() -> None:
    handle = Handle(Settings(kms_providers=KMS_PROVIDERS, key_expiration_ms=1))
    first = handle.crypt()
    assert handle.crypt() is first
    for _ in range(2):
        handle.mark_forked()
    second = handle.crypt()
    assert second not in (first, None) and handle._crypt_of_parent is first and handle.crypt() is second
    handle.close()
    handle.mark_forked()
    with pytest.raises(InvalidOperation, match="was closed"):
        handle.crypt()


@pytest.mark.parametrize("length", [0, 3])
@pytest.mark.parametrize("level", range(5))
def test_libmongocrypt_messages_are_logged_with_level(
    caplog: pytest.LogCaptureFixture, level: int, length: int
) -> None:
    caplog.set_level(1, "gmongo.encryption")
    handle = Handle(Settings(kms_providers=KMS_PROVIDERS))
    handle.log()
    caplog.clear()
    text = ffi.new("char[]", b"a\xffcd")
    handle._log_function(level, text, length, ffi.NULL)
    assert not caplog.records
    for _ in range(2):
        handle.log()
    [record] = caplog.records
    assert record.levelno == (50, 40, 30, 20, 10)[level]
    assert record.getMessage() == f"libmongocrypt: {'a' + chr(0xFFFD) + 'c' if length else ''}"


def kms_request(**fields: Any) -> Any:
    sizes = iter([5, 1, 0])
    defaults = {
        "usleep": 0,
        "kms_provider": "aws",
        "endpoint": "kms.example",
        "message": b"request",
        "bytes_needed": property(lambda _: next(sizes)),
    }
    kind = type("Request", (), {**defaults, **fields, "feed": Mock(), "fail": fields.get("fail", Mock())})
    return kind()


@pytest.fixture
def transports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replace `kms.connect`. Return a list that records the transport of each connection attempt."""
    transports: list[Any] = []

    def connect(address: Any, attach: Any, *, tls: Any) -> Any:
        # Simulate two concurrent connection attempts. Only the second attempt returns its transport.
        for _ in range(2):
            transports.append(Mock(address=address, tls=tls, receive_some=lambda count: bytes(count)))
            attach(transports[-1])
        return transports[-1]

    monkeypatch.setattr(kms, "connect", connect)
    return transports


@pytest.mark.parametrize(("seconds_left", "slept_seconds"), [(None, 2.0), (5.0, 2.0), (0.5, 0.5), (-1.0, 0.0)])
def test_backoff_before_kms_request_ends_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
    transports: list[Any],
    seconds_left: float | None,
    slept_seconds: float,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)
    monkeypatch.setattr(kms, "sleep", pauses.append)
    Kms(Mock(), None).complete_request(
        kms_request(usleep=2_000_000),
        None if seconds_left is None or seconds_left < 1 else 1000.0 + seconds_left,
    )
    assert pauses == [2.0]
    if seconds_left is not None and seconds_left < 1:
        with pytest.raises(NetworkTimeout) if seconds_left < 0 else pytest.MonkeyPatch.context():
            Kms(Mock(), None).complete_request(kms_request(usleep=2_000_000), 1000.0 + seconds_left)
        assert pauses == [2.0, pytest.approx(slept_seconds, abs=0.001)]
    Kms(Mock(), None).complete_request(kms_request(), None)
    assert len(pauses) == 1 + (seconds_left is not None and seconds_left < 1)


def outcome_of_proxy_reply(reply: bytes) -> str:
    """Let a proxy reply to ``CONNECT``. Return the error text, or the number of unread bytes."""
    remaining = deque(reply)
    sock: Any = Mock(recv=lambda count: bytes(remaining.popleft() for _ in range(min(count, len(remaining)))))
    connect = HTTPProxyKMSConnect("http://user:p%40ss@proxy.example", headers={"X-A": "1"})
    try:
        connect._open_tunnel(sock, KMSConnectContext("::1", 443, 10.0))
    except OSError as error:
        return str(error)
    sent = "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nX-A: 1\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n\r\n"
    sock.sendall.assert_called_once_with(sent.encode())
    return f"connected, {len(remaining)} bytes left"


@with_cases
def test_only_success_reply_of_http_proxy_opens_tunnel(reply: bytes, outcome: str) -> None:
    assert outcome_of_proxy_reply(reply) == outcome


def test_access_token_is_requested_again_in_last_minute_of_lifetime(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, timeouts = SimpleNamespace(now=1000.0), []
    monkeypatch.setattr(_clock, "monotonic", lambda: clock.now)

    def request(purpose: str, method: str, url: str, headers: Any, timeout: float) -> Any:
        timeouts.append(timeout)
        return {
            "access_token": f"token {len(timeouts)}",
            "expires_in": "100" if len(timeouts) < 3 else "soon",
        }

    monkeypatch.setattr(http, "request_json", request)
    on_demand = OnDemandCredentials(("azure",))
    for now, number in ((1000.0, 1), (1039.9, 1), (1040.0, 2), (1079.0, 2), (1080.0, 3), (1080.0, 4)):
        clock.now = now
        assert on_demand.fetch(None) == {"azure": {"accessToken": f"token {number}"}}
    assert timeouts == [10.0] * 4


@pytest.mark.parametrize(
    ("seconds_left", "timeout"), [(None, 10.0), (20.0, 10.0), (5.0, 5.0), (0.0, 0.0), (-5.0, -5.0)]
)
def test_kms_request_timeout_is_at_most_the_remaining_time(
    monkeypatch: pytest.MonkeyPatch, seconds_left: float | None, timeout: float
) -> None:
    monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)
    deadline = None if seconds_left is None else 1000.0 + seconds_left
    assert kms.timeout_until(deadline) == timeout
    request = Mock(return_value={"access_token": "token"})
    monkeypatch.setattr(http, "request_json", request)
    OnDemandCredentials(("azure",)).fetch(deadline)
    assert request.call_args.args[4] == max(timeout, 0.001)  # a timeout of 0 would make the socket non-blocking


def test_incomplete_aws_variables_raise_error_with_missing_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        OnDemandCredentials(("aws",)).fetch(None)
    assert "AWS_SECRET_ACCESS_KEY" in str(caught.value) and "authMechanism" not in str(caught.value)


@pytest.mark.parametrize(("version", "is_supported"), [(20, False), (21, True), (25, True)])
def test_queryable_encryption_needs_wire_version_21(version: int, is_supported: bool) -> None:
    operation = _CreateStateCollection(OperationContext("db"), {"create": "c"})
    hello: Any = SimpleNamespace(max_wire_version=version)
    if is_supported:
        assert operation.command(hello)["create"] == "c"
        return
    with pytest.raises(ConfigurationError) as caught:
        operation.command(hello)
    assert str(caught.value) == (
        "Driver support of Queryable Encryption is incompatible with server. Upgrade server to use Queryable "
        "Encryption. (The server has wire version 20. 21 is required.)"
    )


@pytest.mark.parametrize("namespace", ["", "db", "db.", ".c", "."])
def test_key_vault_namespace_without_collection_raises_configuration_error(namespace: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        split_namespace(namespace)
    assert str(caught.value) == f"key_vault_namespace must be 'database.collection', not {namespace!r}"
    assert split_namespace("db.c.d") == ("db", "c.d")
    with pytest.raises(TypeError, match=r"^key_vault_namespace must be a string, not int$"):
        split_namespace(5)  # type: ignore[arg-type]


def test_https_proxy_is_verified_with_default_or_given_tls_context() -> None:
    context = HTTPProxyKMSConnect("https://proxy.example")._ssl_context
    assert context is not None and context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    given_context = ssl.create_default_context()
    assert HTTPProxyKMSConnect("https://proxy.example", given_context)._ssl_context is given_context
    assert HTTPProxyKMSConnect("http://proxy.example")._ssl_context is None


def test_timeout_or_kill_during_proxy_handshake_closes_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connect_callback.socket, "create_connection", lambda address: gevent.sleep(60))
    with pytest.raises(TimeoutError, match=r"^the proxy took more than 0.01 seconds$"):
        HTTPProxyKMSConnect("http://proxy.example")(KMSConnectContext("h", 443, 0.01))
    proxy_socket = Mock()
    monkeypatch.setattr(connect_callback.socket, "create_connection", lambda address: proxy_socket)
    monkeypatch.setattr(HTTPProxyKMSConnect, "_open_tunnel", Mock(side_effect=GreenletExit))
    with pytest.raises(GreenletExit):
        HTTPProxyKMSConnect("http://proxy.example")(KMSConnectContext("h", 443, 5.0))
    assert proxy_socket.close.call_count == 1
    context = Mock()
    with pytest.raises(GreenletExit):
        HTTPProxyKMSConnect("https://proxy.example", context)(KMSConnectContext("h", 443, 5.0))
    context.wrap_socket.assert_called_once_with(proxy_socket, server_hostname="proxy.example")
    assert context.wrap_socket.return_value.close.call_count == 1 and proxy_socket.close.call_count == 2


@with_cases
def test_invalid_http_proxy_header_raises_error_with_reason(
    headers: Any, error_class: type[Exception], message: str
) -> None:
    with pytest.raises(error_class) as caught:
        HTTPProxyKMSConnect("http://proxy.example", headers=headers)
    assert str(caught.value) == message

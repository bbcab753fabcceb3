"""Parts of encryption without servers: contexts in threads, the state machine, cryptography, KMS requests, proxies."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import ssl
import threading
from collections import deque
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, PropertyMock

import gevent
import pytest
from gevent import GreenletExit

pytest.importorskip("pymongocrypt", reason="pymongocrypt is not installed")

from gmongo import _clock
from gmongo._encryption import connect_callback, credentials, handle, hooks, kms, kms_tls, query_analysis
from gmongo._encryption import context as contexts
from gmongo._encryption.collections import _CreateStateCollection
from gmongo._encryption.connect_callback import HTTPProxyKMSConnect, KMSConnectContext
from gmongo._encryption.context import IN_GREENLET_BELOW, Context
from gmongo._encryption.credentials import OnDemandCredentials
from gmongo._encryption.explicit import ExplicitEncryption
from gmongo._encryption.handle import Handle, Settings
from gmongo._encryption.key_vault import split_namespace
from gmongo._encryption.kms import Kms
from gmongo._encryption.library import MongoCryptError, ffi, lib
from gmongo._encryption.machine import Machine
from gmongo.auth.aws_credentials import AwsCredentials
from gmongo.encryption import Algorithm
from gmongo.errors import AutoReconnect, ConfigurationError, EncryptionError, InvalidOperation, NetworkTimeout
from gmongo.execution.operation_context import OperationContext
from gmongo.wire.transport import TransportError
from tests.encryption.conftest import LOCAL
from tests.support.cases import with_cases
from tests.support.wait import eventually

LONG = IN_GREENLET_BELOW


class SimulatedContext:
    """An encryption context with mocks instead of the objects of libmongocrypt."""

    def __init__(self, size: int = 0) -> None:
        self.handle: Any = Mock()
        self.native: Any = Mock()
        self.natives: list[Any] = []

        def create(new: Any) -> Any:
            self.natives.append(new())
            return self.native

        self.context = Context(self.handle, create, size)

    @property
    def closed(self) -> int:
        return int(self.native._close.call_count)


def test_only_long_encryption_steps_run_in_a_worker_thread() -> None:
    here = threading.get_ident()
    for size, in_main_thread in ((LONG - 1, True), (LONG, False)):
        with SimulatedContext(size).context as context:
            assert (context.step(hooks._identity) == here) is in_main_thread
            assert context.step(lambda: hooks._identity() in hooks._work_began) is not in_main_thread
    assert not hooks._work_began


@pytest.mark.real_time
def test_thread_closes_context_of_killed_greenlet() -> None:
    simulated, started, resume = SimulatedContext(LONG), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        resume.wait(5)

    def run() -> None:
        with simulated.context as context:
            context.step(work)

    running = gevent.spawn(run)
    eventually(started.is_set)
    running.kill()
    assert not simulated.closed and simulated.handle.log.call_count == 1
    resume.set()
    eventually(lambda: simulated.closed)
    gevent.sleep(0)
    assert simulated.closed == 1


@pytest.mark.parametrize("thread_ends", ["before", "after"])
def test_context_of_interrupted_greenlet_is_closed_once_without_new_steps(
    monkeypatch: pytest.MonkeyPatch, thread_ends: str
) -> None:
    """End the greenlet before or after its worker thread.

    If the thread has ended, the greenlet closes the context. If the greenlet ends first, the thread
    closes the context.
    """
    simulated, step, pending = SimulatedContext(LONG), Mock(), []

    class Pool:
        def spawn(self, function: Any) -> Any:
            def run_or_defer() -> None:
                if thread_ends == "before":
                    function()
                else:
                    pending.append(function)
                raise GreenletExit

            return SimpleNamespace(get=run_or_defer)

    with pytest.raises(GreenletExit), simulated.context as context:
        monkeypatch.setattr(contexts, "get_hub", lambda: SimpleNamespace(threadpool=Pool()))
        context.step(step)
    assert (step.called, simulated.closed) == ((True, 1) if thread_ends == "before" else (False, 0))
    for function in pending:
        function()
    assert (step.called, simulated.closed) == (thread_ends == "before", 1)


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
    "driver_error", [AutoReconnect("gone"), EncryptionError(ValueError("x")), ValueError("x"), GreenletExit()]
)
@pytest.mark.usefixtures("other_database")
def test_driver_error_in_state_machine_raises_encryption_error(machine_state: str, driver_error: BaseException) -> None:
    """Check that only errors of the driver become an EncryptionError.

    Other errors stay unchanged.
    """
    machine, native, database, _ = machine_with_states(STATES[machine_state])
    for each in (database.keys, database.collections, database.analyse):
        each.side_effect = driver_error
    with pytest.raises(BaseException) as caught:
        machine.run(lambda new: native, 0, None)
    if isinstance(driver_error, AutoReconnect):
        assert type(caught.value) is EncryptionError
        assert caught.value.cause is driver_error is caught.value.__cause__
    else:
        assert caught.value is driver_error
    assert native._close.call_count == 1


def test_final_state_of_machine_returns_none_or_raises() -> None:
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


@pytest.mark.parametrize("algorithm", Algorithm)
def test_only_range_and_text_encryption_is_slow(algorithm: Algorithm) -> None:
    explicit = Mock()
    ExplicitEncryption.encrypt(explicit, b"12345", algorithm, None, None)
    make_context, size = explicit._run.call_args.args
    assert callable(make_context) and size == 5
    slow_algorithms = (Algorithm.RANGE, Algorithm.STRING, Algorithm.TEXTPREVIEW)
    assert explicit._run.call_args.kwargs == {"is_slow": algorithm in slow_algorithms}


def test_worker_thread_pauses_after_its_time_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pauses = SimpleNamespace(now=10.0), []
    monkeypatch.setattr(_clock, "monotonic", lambda: clock.now)
    monkeypatch.setattr(hooks, "_pause", pauses.append)
    hooks._sleep_if_due()  # Only worker threads pause, not this thread.

    def run_steps() -> str:
        for step in (0.0004, 0.0004, 0.0004, 0.0, 0.0009, 0.0004):
            clock.now += step
            hooks._sleep_if_due()
            counts.append(len(pauses))
        return "done"

    counts: list[int] = []
    clock.now = 100.0
    assert hooks.run_in_worker(run_steps) == "done"
    assert counts == [0, 0, 1, 1, 1, 2] and pauses == [0.00005] * 2 and not hooks._work_began
    with pytest.raises(ValueError):
        hooks.run_in_worker(Mock(side_effect=ValueError))
    assert not hooks._work_began


def binary(data: bytes) -> Any:
    """Return a libmongocrypt binary for `data`, and the memory to which the binary refers."""
    memory = ffi.new("uint8_t[]", data or b"\0")
    binary_ = lib.mongocrypt_binary_new_from_data(memory, len(data))
    return ffi.gc(binary_, lib.mongocrypt_binary_destroy), memory


def new_status() -> Any:
    return ffi.gc(lib.mongocrypt_status_new(), lib.mongocrypt_status_destroy)


@pytest.mark.parametrize("size", [16, 65536 - 16, 65536, 65536 * 3 + 32])
@pytest.mark.parametrize("mode", ["CBC", "CTR"])
def test_cipher_in_worker_thread_pauses_after_each_piece(monkeypatch: pytest.MonkeyPatch, size: int, mode: str) -> None:
    pauses: list[int] = []
    monkeypatch.setattr(hooks, "_sleep_if_due", lambda: pauses.append(1))
    key, iv, data = os.urandom(32), os.urandom(16), os.urandom(size)
    encrypt, decrypt = getattr(hooks, f"_{mode}_ENCRYPT"), getattr(hooks, f"_{mode}_DECRYPT")
    outcome = data
    for function in (encrypt, decrypt):
        (k, _1), (i, _2), (source, _3), (target, memory) = map(binary, (key, iv, outcome, bytes(size)))
        written = ffi.new("uint32_t*")
        pauses.clear()
        assert function(ffi.NULL, k, i, source, target, written, new_status())
        assert written[0] == size == lib.mongocrypt_binary_len(target)
        assert len(pauses) == 1 + -(-size // 65536)
        outcome = bytes(ffi.buffer(memory, size))
        assert (outcome != data) is (function is encrypt)
    assert outcome == data


@pytest.mark.parametrize("size", [0, 1, 65536, 65536 * 3 + 1])
@pytest.mark.parametrize(("function", "digest"), [(hooks._HMAC_512, hashlib.sha512), (hooks._HMAC_256, hashlib.sha256)])
def test_hmac_in_pieces_equals_hashlib(monkeypatch: pytest.MonkeyPatch, size: int, function: Any, digest: Any) -> None:
    pauses: list[int] = []
    monkeypatch.setattr(hooks, "_sleep_if_due", lambda: pauses.append(1))
    key, data = os.urandom(32), os.urandom(size)
    (k, _1), (source, _2), (target, memory) = map(binary, (key, data, bytes(64)))
    assert function(ffi.NULL, k, source, target, new_status())
    expected = hmac.digest(key, data, digest)
    assert bytes(ffi.buffer(memory, lib.mongocrypt_binary_len(target))) == expected
    assert len(pauses) == 1 + -(-size // 65536)


def test_error_in_cryptography_callback_has_class_name_without_data() -> None:
    (key, _1), (iv, _2), (source, _3), (target, _4) = map(binary, (b"short", b"iv", b"s3cret", bytes(64)))
    status, length = new_status(), ffi.new("uint32_t*")
    assert not hooks._CBC_ENCRYPT(ffi.NULL, key, iv, source, target, ffi.new("uint32_t*"), status)
    assert not lib.mongocrypt_status_ok(status)
    assert lib.mongocrypt_status_type(status) == lib.MONGOCRYPT_STATUS_ERROR_CLIENT
    assert lib.mongocrypt_status_code(status) == 1
    assert ffi.string(lib.mongocrypt_status_message(status, length)) == b"ValueError in the cryptography"


def test_forked_child_opens_a_new_library_handle() -> None:
    opened = Handle(Settings(kms_providers=LOCAL, key_expiration_ms=1))
    first = opened.crypt()
    assert opened.crypt() is first
    for _ in range(2):
        opened.mark_forked()
    second = opened.crypt()
    assert second not in (first, None) and opened._crypt_of_parent is first and opened.crypt() is second
    opened.close()
    opened.mark_forked()
    with pytest.raises(InvalidOperation, match="was closed"):
        opened.crypt()


def test_access_tokens_and_on_demand_providers_are_detected() -> None:
    providers = {"gcp": {"accessToken": "t"}, "azure": {"tenantId": "x"}, "local": 5}
    assert handle._without_access_tokens(providers) == {"gcp": {}, "azure": {"tenantId": "x"}, "local": 5}
    settings = Settings(kms_providers={"aws": {}, "gcp": {}, "azure": {"x": 1}, "kmip": {}, "local": {}})
    assert settings.on_demand == ("aws", "gcp")


@pytest.mark.parametrize("length", [0, 3])
@pytest.mark.parametrize("level", range(5))
def test_libmongocrypt_messages_are_logged_with_level(
    caplog: pytest.LogCaptureFixture, level: int, length: int
) -> None:
    caplog.set_level(1, "gmongo.encryption")
    opened = Handle(Settings(kms_providers=LOCAL))
    opened.log()
    caplog.clear()
    text = ffi.new("char[]", b"a\xffcd")
    opened._log_function(level, text, length, ffi.NULL)
    assert not caplog.records
    for _ in range(2):
        opened.log()
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
    """Replace `connect`. Return a list that records the transport of each connection attempt."""
    transports: list[Any] = []

    def connect(address: Any, attach: Any, *, tls: Any) -> Any:
        # The driver connects to two addresses concurrently: it abandons the first attempt, and the second succeeds.
        for _ in range(2):
            transports.append(Mock(address=address, tls=tls, receive_some=lambda count: bytes(count)))
            attach(transports[-1])
        return transports[-1]

    monkeypatch.setattr(kms, "connect", connect)
    return transports


def test_kill_during_connect_callback_ends_the_callback_greenlet() -> None:
    ended: list[str] = []

    def connect(context: Any) -> Any:
        try:
            gevent.sleep(1000)
        finally:
            ended.append("callback")

    requesting = gevent.spawn(kms._callback_socket, connect, KMSConnectContext("h", 443, None))
    gevent.sleep(0)
    gevent.sleep(0)
    requesting.kill()
    gevent.sleep(0)
    assert ended == ["callback"]


def test_socket_of_connect_callback_is_detached_and_nonblocking() -> None:
    for module in (socket, gevent.socket):
        original, far = module.socketpair()
        with far:
            detached = kms._detach_socket(original)
            assert original.fileno() == -1 and detached.family == socket.AF_UNIX
            assert not detached.getblocking() and not os.get_blocking(detached.fileno())
            detached.close()


@pytest.mark.parametrize("library_raises", [True, False])
def test_failed_kms_request_is_retried_until_library_raises(transports: list[Any], library_raises: bool) -> None:
    def feed(data: bytes) -> None:
        raise TransportError("reset")

    request = kms_request(fail=Mock(side_effect=MongoCryptError("no more") if library_raises else None))
    request.feed.side_effect = feed
    if library_raises:
        with pytest.raises(EncryptionError) as caught:
            Kms(Mock(), None).complete(request, None)
        assert str(caught.value) == "no more, last attempt failed with: aws KMS at kms.example:443: reset"
        assert type(caught.value.__cause__) is AutoReconnect
    else:
        Kms(Mock(), None).complete(request, None)
    assert request.fail.call_count == 1
    assert [each.close.call_count for each in transports] == [1, 1]


@pytest.mark.parametrize(("seconds_left", "slept_seconds"), [(None, 2.0), (5.0, 2.0), (0.5, 0.5), (-1.0, 0.0)])
def test_backoff_before_kms_request_ends_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch, transports: list[Any], seconds_left: float | None, slept_seconds: float
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)
    monkeypatch.setattr(kms, "sleep", pauses.append)
    Kms(Mock(), None).complete(
        kms_request(usleep=2_000_000), None if seconds_left is None or seconds_left < 1 else 1000.0 + seconds_left
    )
    assert pauses == [2.0]
    if seconds_left is not None and seconds_left < 1:
        with pytest.raises(NetworkTimeout) if seconds_left < 0 else pytest.MonkeyPatch.context():
            Kms(Mock(), None).complete(kms_request(usleep=2_000_000), 1000.0 + seconds_left)
        assert pauses == [2.0, pytest.approx(slept_seconds, abs=0.001)]
    Kms(Mock(), None).complete(kms_request(), None)
    assert len(pauses) == 1 + (seconds_left is not None and seconds_left < 1)


def outcome_of_proxy_reply(*reply_pieces: bytes) -> str:
    """Let a proxy reply to ``CONNECT`` in pieces. Return "connected" or the text of the error."""
    remaining = deque(b"".join(reply_pieces))
    sock: Any = Mock(recv=lambda count: bytes(remaining.popleft() for _ in range(min(count, len(remaining)))))
    connect = HTTPProxyKMSConnect("http://user:p%40ss@proxy.example", headers={"X-A": "1"})
    try:
        connect._tunnel(sock, KMSConnectContext("::1", 443, 10.0))
    except OSError as error:
        return str(error)
    sent = "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nX-A: 1\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n\r\n"
    sock.sendall.assert_called_once_with(sent.encode())
    return f"connected, {len(remaining)} bytes left"


@with_cases
def test_reply_of_http_proxy_connects_or_raises(reply: bytes, outcome: str) -> None:
    assert outcome_of_proxy_reply(reply) == outcome


@pytest.mark.real_time
@pytest.mark.parametrize("closed_end", ["near", "far"])
def test_tls_bridge_forwards_both_ways_and_closes_both_ends(closed_end: str) -> None:
    proxied, far = gevent.socket.socketpair()
    near = connect_callback._bridge_to_plain_socket(proxied)
    data = os.urandom(300_000)
    for source, target in ((near, far), (far, near)):
        sending = gevent.spawn(source.sendall, data)
        received = b""
        while len(received) < len(data):
            received += target.recv(100_000)
        sending.join()
        assert received == data
    closed, open_end = (near, far) if closed_end == "near" else (far, near)
    closed.close()
    with gevent.Timeout(5):
        assert open_end.recv(1) == b""
    open_end.close()
    eventually(lambda: proxied.fileno() == -1)


def test_access_token_is_requested_again_in_last_minute_of_lifetime(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, timeouts = SimpleNamespace(now=1000.0), []
    monkeypatch.setattr(_clock, "monotonic", lambda: clock.now)

    def request(purpose: str, method: str, url: str, headers: Any, timeout: float) -> Any:
        timeouts.append(timeout)
        return {"access_token": f"token {len(timeouts)}", "expires_in": "100" if len(timeouts) < 3 else "soon"}

    monkeypatch.setattr(credentials, "request_json", request)
    on_demand = OnDemandCredentials(("azure",))
    assert repr(on_demand) == "<OnDemandCredentials azure>"
    for now, number in ((1000.0, 1), (1039.9, 1), (1040.0, 2), (1079.0, 2), (1080.0, 3), (1080.0, 4)):
        clock.now = now
        assert on_demand.fetch(None) == {"azure": {"accessToken": f"token {number}"}}
    assert timeouts == [10.0] * 4


@pytest.mark.parametrize(
    ("seconds_left", "seconds"), [(None, 10.0), (20.0, 10.0), (5.0, 5.0), (0.0, 0.001), (-5.0, 0.001)]
)
def test_metadata_request_timeout_is_at_most_the_remaining_time(
    monkeypatch: pytest.MonkeyPatch, seconds_left: float | None, seconds: float
) -> None:
    monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)
    assert credentials._timeout_until(None if seconds_left is None else 1000.0 + seconds_left) == seconds


def test_incomplete_aws_variables_raise_error_with_missing_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        OnDemandCredentials(("aws",)).fetch(None)
    assert "AWS_SECRET_ACCESS_KEY" in str(caught.value) and "authMechanism" not in str(caught.value)


@pytest.mark.parametrize("token", [None, "t"])
def test_aws_credentials_have_field_names_of_libmongocrypt(monkeypatch: pytest.MonkeyPatch, token: str | None) -> None:
    on_demand = OnDemandCredentials(("aws",))
    monkeypatch.setattr(on_demand._aws, "find", lambda: AwsCredentials("k", "s", token))
    more = {} if token is None else {"sessionToken": token}
    assert on_demand.fetch(None) == {"aws": {"accessKeyId": "k", "secretAccessKey": "s", **more}}


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
def test_key_vault_namespace_without_collection_raises(namespace: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        split_namespace(namespace)
    assert str(caught.value) == f"key_vault_namespace must be 'database.collection', not {namespace!r}"
    assert split_namespace("db.c.d") == ("db", "c.d")
    with pytest.raises(TypeError, match=r"^key_vault_namespace must be a string, not int$"):
        split_namespace(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("checks", [1, 3, 500, 501, None])
def test_spawn_of_mongocryptd_waits_for_shell_at_most_one_second(
    monkeypatch: pytest.MonkeyPatch, checks: int | None
) -> None:
    spawned, pauses = Mock(return_value=77), []
    outcomes = iter([(0, 0)] * ((checks or 3) - 1) + [ChildProcessError() if checks is None else (77, 0)])

    def waitpid(process: int, options: int) -> Any:
        assert (process, options) == (77, os.WNOHANG)
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(query_analysis.os, "posix_spawn", spawned)
    monkeypatch.setattr(query_analysis.os, "waitpid", waitpid)
    monkeypatch.setattr(query_analysis, "sleep", pauses.append)
    query_analysis.spawn_detached(["mongocryptd", "--port", "1"])
    assert pauses == [0.002] * (min(checks or 3, 501) - 1)
    path, arguments, environment = spawned.call_args.args
    assert path == "/bin/sh" and arguments == ["sh", "-c", '"$@" &', "sh", "mongocryptd", "--port", "1"]
    assert environment is os.environ
    assert spawned.call_args.kwargs["setsid"] is True
    assert [action[1:3] for action in spawned.call_args.kwargs["file_actions"]] == [
        (each, os.devnull) for each in range(3)
    ]


class RecordingLibrary:
    """Substitute for libmongocrypt that records the calls of its functions."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(lib, name)

        def call(*arguments: Any) -> Any:
            self.calls.append((name.removeprefix("mongocrypt_"), *arguments[1:]))
            return real(*arguments)

        return call


ALWAYS = {
    "setopt_log_handler",
    "setopt_kms_providers",
    "setopt_enable_multiple_collinfo",
    "setopt_use_need_mongo_collinfo_with_db_state",
    "setopt_retry_kms",
    "is_crypto_available",
    "init",
    "crypt_shared_lib_version_string",
}


@with_cases
def test_encryption_settings_call_functions_of_libmongocrypt(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], expected_calls: list[str]
) -> None:
    recording = RecordingLibrary()
    monkeypatch.setattr(handle, "lib", recording)
    chosen = Settings(**{"kms_providers": LOCAL, **settings})
    if "crypt_shared_lib_path" in settings:
        with pytest.raises(MongoCryptError):
            Handle(chosen)
    else:
        opened = Handle(chosen)
        assert opened.settings is chosen
        [handler] = [call for call in recording.calls if call[0] == "setopt_log_handler"]
        assert handler[1] is opened._log_function
    calls = {name: arguments for name, *arguments in recording.calls}
    assert {name for name in calls if not name.startswith(("new", "destroy", "status"))} >= ALWAYS - {
        "crypt_shared_lib_version_string"
    }
    assert {name for name in calls if name.startswith("setopt")} == {
        name for name in ALWAYS.union(expected_calls) if name.startswith("setopt")
    }
    assert calls["setopt_retry_kms"] == [True]
    if "key_expiration_ms" in settings:
        assert calls["setopt_key_expiration"] == [settings["key_expiration_ms"]]
    if "analyses" in settings:
        assert calls["setopt_append_crypt_shared_lib_search_path"] == [b"$SYSTEM"]


def test_https_proxy_is_verified_with_default_or_given_tls_context() -> None:
    context = HTTPProxyKMSConnect("https://proxy.example")._context
    assert context is not None and context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    given = ssl.create_default_context()
    assert HTTPProxyKMSConnect("https://proxy.example", given)._context is given
    assert HTTPProxyKMSConnect("http://proxy.example")._context is None


def test_timeout_or_kill_during_proxy_handshake_closes_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_callback.socket, "create_connection", lambda address: gevent.sleep(60))
    with pytest.raises(TimeoutError, match=r"^the proxy took more than 0.01 seconds$"):
        HTTPProxyKMSConnect("http://proxy.example")(KMSConnectContext("h", 443, 0.01))
    closed = Mock()
    monkeypatch.setattr(connect_callback.socket, "create_connection", lambda address: closed)
    monkeypatch.setattr(HTTPProxyKMSConnect, "_tunnel", Mock(side_effect=GreenletExit))
    with pytest.raises(GreenletExit):
        HTTPProxyKMSConnect("http://proxy.example")(KMSConnectContext("h", 443, 5.0))
    assert closed.close.call_count == 1
    context = Mock()
    with pytest.raises(GreenletExit):
        HTTPProxyKMSConnect("https://proxy.example", context)(KMSConnectContext("h", 443, 5.0))
    context.wrap_socket.assert_called_once_with(closed, server_hostname="proxy.example")
    assert context.wrap_socket.return_value.close.call_count == 1 and closed.close.call_count == 2


def test_proxy_headers_are_encoded_as_latin_1() -> None:
    sock: Any = Mock(recv=Mock(return_value=b""))
    connect = HTTPProxyKMSConnect("http://proxy.example", headers={"X-A": "\xfc"})
    with pytest.raises(OSError):
        connect._tunnel(sock, KMSConnectContext("h", 443, 10.0))
    assert b"X-A: \xfc\r\n" in sock.sendall.call_args.args[0]


@pytest.mark.parametrize("seconds_left", [None, 0.5, 0.0])
def test_kms_request_is_retried_only_before_deadline(
    monkeypatch: pytest.MonkeyPatch, seconds_left: float | None
) -> None:
    now = SimpleNamespace(time=1000.0)
    monkeypatch.setattr(_clock, "monotonic", lambda: now.time)

    def exchange(*_: Any) -> None:
        now.time = 1010.0 - (seconds_left or 0.0)
        raise AutoReconnect("x")

    service, request = Kms(Mock(), None), kms_request()
    monkeypatch.setattr(service, "_exchange", exchange)
    if seconds_left == 0.0:
        with pytest.raises(AutoReconnect):
            service.complete(request, 1010.0)
    else:
        service.complete(request, None if seconds_left is None else 1010.0)
    assert request.fail.called is (seconds_left != 0.0)


@with_cases
def test_default_tls_context_exists_for_providers_without_tls_options(
    options: Any, has_default: bool, providers_with_tls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options_read: list[Any] = []
    monkeypatch.setattr(
        kms_tls, "_tls_from", lambda tls_options: options_read.append(tls_options) or str(len(options_read))
    )
    kms_contexts = kms_tls.KmsTls(options, ["aws", "kmip", "local", "local:x"])
    assert ({"tls": True} in options_read[len(options or {}) :]) is has_default
    assert (kms_contexts._default is not None) is has_default
    assert [kms_contexts.for_provider("aws"), kms_contexts.for_provider("kmip")] == providers_with_tls


@with_cases
def test_invalid_http_proxy_header_raises(headers: Any, error_class: type[Exception], message: str) -> None:
    with pytest.raises(error_class) as caught:
        HTTPProxyKMSConnect("http://proxy.example", headers=headers)
    assert str(caught.value) == message


def test_messages_of_library_during_opening_of_handle_are_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []
    monkeypatch.setattr(Handle, "log", lambda handle: logged.append(handle))
    opened = Handle(Settings(kms_providers=LOCAL))
    assert logged == [opened]

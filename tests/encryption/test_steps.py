"""The parts of encryption one by one, without servers: contexts in greenlets and threads, the state machine, the
cryptography, requests to key management services.
"""

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
from gmongo._encryption.context import AT_ONCE_BELOW, Context
from gmongo._encryption.credentials import OnDemand
from gmongo._encryption.explicit import Explicit
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
from tests.support.wait import eventually

LONG = AT_ONCE_BELOW


class Scene:
    """A context of a library that is not there."""

    def __init__(self, size: int = 0) -> None:
        self.handle: Any = Mock()
        self.native: Any = Mock()
        self.made_of: list[Any] = []

        def make(new: Any) -> Any:
            self.made_of.append(new())
            return self.native

        self.context = Context(self.handle, make, size)

    @property
    def closed(self) -> int:
        return int(self.native._close.call_count)


# Contexts


def test_short_steps_stay_in_the_thread_and_long_ones_leave_it() -> None:
    here = threading.get_ident()
    for size, same in ((LONG - 1, True), (LONG, False)):
        with Scene(size).context as context:
            assert (context.step(hooks._identity) == here) is same
            assert context.step(lambda: hooks._identity() in hooks._turns) is not same
    assert not hooks._turns


@pytest.mark.real_time
def test_a_context_is_left_to_the_thread_that_works_on_it() -> None:
    scene, begun, go = Scene(LONG), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(5)

    def run() -> None:
        with scene.context as context:
            context.step(work)

    running = gevent.spawn(run)
    eventually(begun.is_set)
    running.kill()
    assert not scene.closed and scene.handle.log.call_count == 1
    go.set()
    eventually(lambda: scene.closed)
    gevent.sleep(0)
    assert scene.closed == 1


@pytest.mark.parametrize("order", ["before", "after"])
def test_an_interruption_beside_the_end_of_a_step(monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    """Whichever of greenlet and thread is done last closes the context; what was not begun is not done."""
    scene, done, left = Scene(LONG), Mock(), []

    class Pool:
        def spawn(self, function: Any) -> Any:
            def get() -> None:
                if order == "before":
                    function()
                else:
                    left.append(function)
                raise GreenletExit

            return SimpleNamespace(get=get)

    with pytest.raises(GreenletExit), scene.context as context:
        monkeypatch.setattr(contexts, "get_hub", lambda: SimpleNamespace(threadpool=Pool()))
        context.step(done)
    assert (done.called, scene.closed) == ((True, 1) if order == "before" else (False, 0))
    for function in left:
        function()
    assert (done.called, scene.closed) == (order == "before", 1)


# The state machine

STATES = {
    "keys": lib.MONGOCRYPT_CTX_NEED_MONGO_KEYS,
    "collections": lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO,
    "collections of a database": lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO_WITH_DB,
    "analysed": lib.MONGOCRYPT_CTX_NEED_MONGO_MARKINGS,
}


@pytest.fixture
def other_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "database", PropertyMock(return_value="other"))


def machine_of(*states: int, **settings: Any) -> tuple[Machine, Any, Any, Any]:
    native, database, services = Mock(), Mock(), Mock()
    type(native).state = PropertyMock(side_effect=states)
    native.database = "db"
    chosen = Settings(kms_providers={"local": {}}, **settings)
    opened: Any = Mock(settings=chosen)
    return Machine(opened, database, services), native, database, services


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    "raised", [AutoReconnect("gone"), EncryptionError(ValueError("x")), ValueError("x"), GreenletExit()]
)
@pytest.mark.usefixtures("other_database")
def test_errors_on_the_way(state: str, raised: BaseException) -> None:
    """The driver's own are errors of encryption; others go through."""
    made, native, database, _ = machine_of(STATES[state])
    for each in (database.keys, database.collections, database.analysed):
        each.side_effect = raised
    with pytest.raises(BaseException) as caught:
        made.run(lambda new: native, 0, None)
    if isinstance(raised, AutoReconnect):
        assert type(caught.value) is EncryptionError
        assert caught.value.cause is raised is caught.value.__cause__
    else:
        assert caught.value is raised
    assert native._close.call_count == 1


def test_the_end_of_a_context() -> None:
    made, native, _, _ = machine_of(lib.MONGOCRYPT_CTX_DONE)
    assert made.run(lambda new: native, 0, None) is None
    made, native, _, _ = machine_of(lib.MONGOCRYPT_CTX_ERROR)
    native._raise_from_status.side_effect = MongoCryptError("refused")
    with pytest.raises(EncryptionError, match="refused"):
        made.run(lambda new: native, 0, None)
    made, native, _, _ = machine_of(4711)
    with pytest.raises(EncryptionError) as caught:
        made.run(lambda new: native, 0, None)
    assert str(caught.value) == "libmongocrypt is in state 4711, which gmongo does not support"
    assert type(caught.value.cause) is ValueError


@pytest.mark.parametrize("algorithm", Algorithm)
def test_encryption_for_searches_is_heavy(algorithm: Algorithm) -> None:
    """Of ranges and parts of texts: however short a value is, it becomes many."""
    explicit = Mock()
    Explicit.encrypt(explicit, b"12345", algorithm, None, None)
    make, size = explicit._run.call_args.args
    assert callable(make) and size == 5
    searched = (Algorithm.RANGE, Algorithm.STRING, Algorithm.TEXTPREVIEW)
    assert explicit._run.call_args.kwargs == {"heavy": algorithm in searched}


# The cryptography


def test_a_thread_rests_after_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, rests = SimpleNamespace(now=10.0), []
    monkeypatch.setattr(_clock, "monotonic", lambda: clock.now)
    monkeypatch.setattr(hooks, "_pause", rests.append)
    hooks._rest()  # not in a worker

    def work() -> str:
        for step in (0.0004, 0.0004, 0.0004, 0.0, 0.0009, 0.0004):
            clock.now += step
            hooks._rest()
            found.append(len(rests))
        return "done"

    found: list[int] = []
    clock.now = 100.0
    assert hooks.in_worker(work) == "done"
    assert found == [0, 0, 1, 1, 1, 2] and rests == [0.00005] * 2 and not hooks._turns
    with pytest.raises(ValueError):
        hooks.in_worker(Mock(side_effect=ValueError))
    assert not hooks._turns


def binary(data: bytes) -> Any:
    """What libmongocrypt shows of bytes, and what keeps them."""
    memory = ffi.new("uint8_t[]", data or b"\0")
    found = lib.mongocrypt_binary_new_from_data(memory, len(data))
    return ffi.gc(found, lib.mongocrypt_binary_destroy), memory


def new_status() -> Any:
    return ffi.gc(lib.mongocrypt_status_new(), lib.mongocrypt_status_destroy)


@pytest.mark.parametrize("size", [16, 65536 - 16, 65536, 65536 * 3 + 32])
@pytest.mark.parametrize("mode", ["CBC", "CTR"])
def test_ciphers_work_in_pieces(monkeypatch: pytest.MonkeyPatch, size: int, mode: str) -> None:
    rests: list[int] = []
    monkeypatch.setattr(hooks, "_rest", lambda: rests.append(1))
    key, iv, data = os.urandom(32), os.urandom(16), os.urandom(size)
    encrypt, decrypt = getattr(hooks, f"_{mode}_ENCRYPT"), getattr(hooks, f"_{mode}_DECRYPT")
    outcome = data
    for function in (encrypt, decrypt):
        (k, _1), (i, _2), (source, _3), (target, memory) = map(binary, (key, iv, outcome, bytes(size)))
        written = ffi.new("uint32_t*")
        rests.clear()
        assert function(ffi.NULL, k, i, source, target, written, new_status())
        assert written[0] == size == lib.mongocrypt_binary_len(target)
        assert len(rests) == 1 + -(-size // 65536)
        outcome = bytes(ffi.buffer(memory, size))
        assert (outcome != data) is (function is encrypt)
    assert outcome == data


@pytest.mark.parametrize("size", [0, 1, 65536, 65536 * 3 + 1])
@pytest.mark.parametrize(("function", "digest"), [(hooks._HMAC_512, hashlib.sha512), (hooks._HMAC_256, hashlib.sha256)])
def test_codes_are_computed_in_pieces(monkeypatch: pytest.MonkeyPatch, size: int, function: Any, digest: Any) -> None:
    rests: list[int] = []
    monkeypatch.setattr(hooks, "_rest", lambda: rests.append(1))
    key, data = os.urandom(32), os.urandom(size)
    (k, _1), (source, _2), (target, memory) = map(binary, (key, data, bytes(64)))
    assert function(ffi.NULL, k, source, target, new_status())
    expected = hmac.digest(key, data, digest)
    assert bytes(ffi.buffer(memory, lib.mongocrypt_binary_len(target))) == expected
    assert len(rests) == 1 + -(-size // 65536)


def test_what_goes_wrong_in_the_cryptography_is_named_without_the_data() -> None:
    (key, _1), (iv, _2), (source, _3), (target, _4) = map(binary, (b"short", b"iv", b"s3cret", bytes(64)))
    status, length = new_status(), ffi.new("uint32_t*")
    assert not hooks._CBC_ENCRYPT(ffi.NULL, key, iv, source, target, ffi.new("uint32_t*"), status)
    assert not lib.mongocrypt_status_ok(status)
    assert lib.mongocrypt_status_type(status) == lib.MONGOCRYPT_STATUS_ERROR_CLIENT
    assert lib.mongocrypt_status_code(status) == 1
    assert ffi.string(lib.mongocrypt_status_message(status, length)) == b"ValueError in the cryptography"


# An open library


def test_a_forked_child_opens_the_library_again() -> None:
    opened = Handle(Settings(kms_providers=LOCAL, key_expiration_ms=1))
    first = opened.crypt()
    assert opened.crypt() is first
    for _ in range(2):
        opened.mark_forked()
    again = opened.crypt()
    assert again not in (first, None) and opened._parents is first and opened.crypt() is again
    opened.close()
    opened.mark_forked()
    with pytest.raises(InvalidOperation, match="was closed"):
        opened.crypt()


def test_tokens_are_not_shown_to_what_does_not_know_them() -> None:
    given = {"gcp": {"accessToken": "t"}, "azure": {"tenantId": "x"}, "local": 5}
    assert handle._checkable(given) == {"gcp": {}, "azure": {"tenantId": "x"}, "local": 5}
    found = Settings(kms_providers={"aws": {}, "gcp": {}, "azure": {"x": 1}, "kmip": {}, "local": {}})
    assert found.on_demand == ("aws", "gcp")


@pytest.mark.parametrize("length", [0, 3])
@pytest.mark.parametrize("level", range(5))
def test_what_the_library_says_is_passed_on(caplog: pytest.LogCaptureFixture, level: int, length: int) -> None:
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


# Key management services


def asked_for(**fields: Any) -> Any:
    needed = iter([5, 1, 0])
    usual = {
        "usleep": 0,
        "kms_provider": "aws",
        "endpoint": "kms.example",
        "message": b"question",
        "bytes_needed": property(lambda _: next(needed)),
    }
    kind = type("Request", (), {**usual, **fields, "feed": Mock(), "fail": fields.get("fail", Mock())})
    return kind()


@pytest.fixture
def transports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was connected, each with what it leads to."""
    made: list[Any] = []

    def connect(address: Any, attach: Any, *, tls: Any) -> Any:
        for _ in range(2):  # the first address does not answer
            made.append(Mock(address=address, tls=tls, receive_some=lambda count: bytes(count)))
            attach(made[-1])
        return made[-1]

    monkeypatch.setattr(kms, "connect", connect)
    return made


def test_an_application_that_connects_is_not_waited_for_by_what_is_killed() -> None:
    ended: list[str] = []

    def connect(context: Any) -> Any:
        try:
            gevent.sleep(1000)
        finally:
            ended.append("its greenlet")

    asking = gevent.spawn(kms._answer_of, connect, KMSConnectContext("h", 443, None))
    gevent.sleep(0)
    gevent.sleep(0)
    asking.kill()
    gevent.sleep(0)
    assert ended == ["its greenlet"]


def test_a_socket_that_is_taken_over_does_not_block() -> None:
    """Neither the application's, which may, nor gevent's."""
    for module in (socket, gevent.socket):
        given, far = module.socketpair()
        with far:
            taken = kms._detached(given)
            assert given.fileno() == -1 and taken.family == socket.AF_UNIX
            assert not taken.getblocking() and not os.get_blocking(taken.fileno())
            taken.close()


@pytest.mark.parametrize("times", [1, 2])
def test_a_request_that_fails_may_be_made_again(transports: list[Any], times: int) -> None:
    def feed(data: bytes) -> None:
        raise TransportError("reset")

    request = asked_for(fail=Mock(side_effect=MongoCryptError("no more") if times == 1 else None))
    request.feed.side_effect = feed
    if times == 1:
        with pytest.raises(EncryptionError) as caught:
            Kms(Mock(), None).complete(request, None)
        assert str(caught.value) == "no more, last attempt failed with: aws KMS at kms.example:443: reset"
        assert type(caught.value.__cause__) is AutoReconnect
    else:
        Kms(Mock(), None).complete(request, None)
    assert request.fail.call_count == 1
    assert [each.close.call_count for each in transports] == [1, 1]


@pytest.mark.parametrize(("left", "slept"), [(None, 2.0), (5.0, 2.0), (0.5, 0.5), (-1.0, 0.0)])
def test_the_pause_before_a_request_keeps_the_deadline(
    monkeypatch: pytest.MonkeyPatch, transports: list[Any], left: float | None, slept: float
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)
    monkeypatch.setattr(kms, "sleep", pauses.append)
    Kms(Mock(), None).complete(asked_for(usleep=2_000_000), None if left is None or left < 1 else 1000.0 + left)
    assert pauses == [2.0]
    if left is not None and left < 1:
        with pytest.raises(NetworkTimeout) if left < 0 else pytest.MonkeyPatch.context():
            Kms(Mock(), None).complete(asked_for(usleep=2_000_000), 1000.0 + left)
        assert pauses == [2.0, pytest.approx(slept, abs=0.001)]
    Kms(Mock(), None).complete(asked_for(), None)
    assert len(pauses) == 1 + (left is not None and left < 1)


# Through a proxy


def answered(*pieces: bytes) -> str:
    """What becomes of an answer of a proxy."""
    left = deque(b"".join(pieces))
    sock: Any = Mock(recv=lambda count: bytes(left.popleft() for _ in range(min(count, len(left)))))
    connect = HTTPProxyKMSConnect("http://user:p%40ss@proxy.example", headers={"X-A": "1"})
    try:
        connect._tunnel(sock, KMSConnectContext("::1", 443, 10.0))
    except OSError as error:
        return str(error)
    sent = "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nX-A: 1\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n\r\n"
    sock.sendall.assert_called_once_with(sent.encode())
    return f"connected, {len(left)} bytes left"


AS_IT_SHOULD = "the proxy sent a malformed answer to CONNECT"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nrest", "connected, 4 bytes left"),
        (b"HTTP/1.0 200\r\nX: y\r\n\r\n", "connected, 0 bytes left"),
        (b"HTTP/1.1 407 No\r\n\r\n", "the proxy refused to connect to [::1]:443: 'HTTP/1.1 407 No'"),
        (b"200\r\n\r\n", "the proxy refused to connect to [::1]:443: '200'"),
        (b"HTTP/1.1 2000 X\r\n\r\n", "the proxy refused to connect to [::1]:443: 'HTTP/1.1 2000 X'"),
        (b"y" * 300 + b"\r\n\r\n", f"the proxy refused to connect to [::1]:443: {'y' * 200!r}"),
        (b"", AS_IT_SHOULD),
        (b"HTTP/1.1 200 OK\r\n\r", AS_IT_SHOULD),
        (b"HTTP/1.1 200 OK\r\n" + b"x" * 70_000 + b"\r\n\r\n", AS_IT_SHOULD),
    ],
)
def test_what_a_proxy_answers(answer: bytes, outcome: str) -> None:
    assert answered(answer) == outcome


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://h:port", "proxy_url is not a URL: "),
        ("ftp://h", "proxy_url must begin with http:// or https://"),
        ("http://", "proxy_url must name a host"),
        *(
            (f"http://h{rest}", "proxy_url must not have a path, a query or a fragment")
            for rest in ("/path", "?query", "#fragment", "/?query")
        ),
    ],
)
def test_urls_of_proxies_that_are_refused(url: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        HTTPProxyKMSConnect(url)
    assert str(caught.value).startswith(why)


@pytest.mark.real_time
@pytest.mark.parametrize("end", ["ours", "theirs"])
def test_a_bridge_ends_at_both_ends(end: str) -> None:
    """Bytes go both ways, more than fit at once; whichever end is closed, the other one is, too."""
    proxied, far = gevent.socket.socketpair()
    ours = connect_callback._bridge(proxied)
    data = os.urandom(300_000)
    for source, target in ((ours, far), (far, ours)):
        sending = gevent.spawn(source.sendall, data)
        found = b""
        while len(found) < len(data):
            found += target.recv(100_000)
        sending.join()
        assert found == data
    closed, left = (ours, far) if end == "ours" else (far, ours)
    closed.close()
    with gevent.Timeout(5):
        assert left.recv(1) == b""
    left.close()
    eventually(lambda: proxied.fileno() == -1)


# Credentials on demand


def test_a_token_is_fetched_again_in_its_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = SimpleNamespace(now=1000.0), []
    monkeypatch.setattr(_clock, "monotonic", lambda: clock.now)

    def request(what: str, method: str, url: str, headers: Any, timeout: float) -> Any:
        asked.append(timeout)
        return {"access_token": f"token {len(asked)}", "expires_in": "100" if len(asked) < 3 else "soon"}

    monkeypatch.setattr(credentials, "request_json", request)
    found = OnDemand(("azure",))
    assert repr(found) == "<OnDemand azure>"
    for now, number in ((1000.0, 1), (1039.9, 1), (1040.0, 2), (1079.0, 2), (1080.0, 3), (1080.0, 4)):
        clock.now = now
        assert found.find(None) == {"azure": {"accessToken": f"token {number}"}}
    assert asked == [10.0] * 4


@pytest.mark.parametrize(("left", "seconds"), [(None, 10.0), (20.0, 10.0), (5.0, 5.0), (0.0, 0.001), (-5.0, 0.001)])
def test_a_service_has_as_long_as_is_left(monkeypatch: pytest.MonkeyPatch, left: float | None, seconds: float) -> None:
    monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)
    assert credentials._seconds(None if left is None else 1000.0 + left) == seconds


def test_variables_of_aws_that_make_no_sense_are_named_as_the_users_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        OnDemand(("aws",)).find(None)
    assert "AWS_SECRET_ACCESS_KEY" in str(caught.value) and "authMechanism" not in str(caught.value)


@pytest.mark.parametrize("token", [None, "t"])
def test_credentials_of_aws_as_the_library_takes_them(monkeypatch: pytest.MonkeyPatch, token: str | None) -> None:
    found = OnDemand(("aws",))
    monkeypatch.setattr(found._aws, "find", lambda: AwsCredentials("k", "s", token))
    more = {} if token is None else {"sessionToken": token}
    assert found.find(None) == {"aws": {"accessKeyId": "k", "secretAccessKey": "s", **more}}


# Names


@pytest.mark.parametrize(("version", "good"), [(20, False), (21, True), (25, True)])
def test_queryable_encryption_is_for_7_0(version: int, good: bool) -> None:
    operation = _CreateStateCollection(OperationContext("db"), {"create": "c"})
    hello: Any = SimpleNamespace(max_wire_version=version)
    if good:
        assert operation.command(hello)["create"] == "c"
        return
    with pytest.raises(ConfigurationError) as caught:
        operation.command(hello)
    assert str(caught.value) == (
        "Driver support of Queryable Encryption is incompatible with server. Upgrade server to use Queryable "
        "Encryption. (The server has wire version 20. 21 is required.)"
    )


@pytest.mark.parametrize("namespace", ["", "db", "db.", ".c", "."])
def test_a_key_vault_has_two_names(namespace: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        split_namespace(namespace)
    assert str(caught.value) == f"key_vault_namespace must be 'database.collection', not {namespace!r}"
    assert split_namespace("db.c.d") == ("db", "c.d")
    with pytest.raises(TypeError, match=r"^key_vault_namespace must be a string, not int$"):
        split_namespace(5)  # type: ignore[arg-type]


# A process of its own


@pytest.mark.parametrize("looks", [1, 3, 500, 501, None])
def test_the_shell_is_waited_for(monkeypatch: pytest.MonkeyPatch, looks: int | None) -> None:
    """Until it has ended, or the loop has noticed that, or for a second."""
    spawned, pauses = Mock(return_value=77), []
    outcomes = iter([(0, 0)] * ((looks or 3) - 1) + [ChildProcessError() if looks is None else (77, 0)])

    def waitpid(process: int, options: int) -> Any:
        assert (process, options) == (77, os.WNOHANG)
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(query_analysis.os, "posix_spawn", spawned)
    monkeypatch.setattr(query_analysis.os, "waitpid", waitpid)
    monkeypatch.setattr(query_analysis, "sleep", pauses.append)
    query_analysis.spawn_apart(["mongocryptd", "--port", "1"])
    assert pauses == [0.002] * (min(looks or 3, 501) - 1)
    path, arguments, environment = spawned.call_args.args
    assert path == "/bin/sh" and arguments == ["sh", "-c", '"$@" &', "sh", "mongocryptd", "--port", "1"]
    assert environment is os.environ
    assert spawned.call_args.kwargs["setsid"] is True
    assert [action[1:3] for action in spawned.call_args.kwargs["file_actions"]] == [
        (each, os.devnull) for each in range(3)
    ]


class Noting:
    """The library, and what it was asked to do."""

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
FIELDS = {"escCollection": "e", "ecocCollection": "o", "fields": []}


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({}, set()),
        ({"schema_map": {"db.c": {"bsonType": "object"}}}, {"setopt_schema_map"}),
        ({"encrypted_fields_map": {"db.c": FIELDS}}, {"setopt_encrypted_field_config_map"}),
        ({"bypass_query_analysis": True}, {"setopt_bypass_query_analysis"}),
        ({"analyses": True}, {"setopt_append_crypt_shared_lib_search_path"}),
        (
            {"analyses": True, "crypt_shared_lib_path": "$ORIGIN/none"},
            {"setopt_append_crypt_shared_lib_search_path", "setopt_set_crypt_shared_lib_path_override"},
        ),
        ({"key_expiration_ms": 5}, {"setopt_key_expiration"}),
        ({"key_expiration_ms": 0}, {"setopt_key_expiration"}),
        ({"kms_providers": {**LOCAL, "aws": {}}}, {"setopt_use_need_kms_credentials_state"}),
    ],
)
def test_what_the_library_is_told(monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], more: set[str]) -> None:
    noting = Noting()
    monkeypatch.setattr(handle, "lib", noting)
    chosen = Settings(**{"kms_providers": LOCAL, **settings})
    if "crypt_shared_lib_path" in settings:
        with pytest.raises(MongoCryptError):
            Handle(chosen)
        more = more - {"init"}
    else:
        opened = Handle(chosen)
        assert opened.settings is chosen
        [handler] = [call for call in noting.calls if call[0] == "setopt_log_handler"]
        assert handler[1] is opened._log_function
    told = {name: arguments for name, *arguments in noting.calls}
    assert {name for name in told if not name.startswith(("new", "destroy", "status"))} >= ALWAYS - {
        "crypt_shared_lib_version_string"
    }
    assert {name for name in told if name.startswith("setopt")} == {
        name for name in ALWAYS | more if name.startswith("setopt")
    }
    assert told["setopt_retry_kms"] == [True]
    if "key_expiration_ms" in settings:
        assert told["setopt_key_expiration"] == [settings["key_expiration_ms"]]
    if "analyses" in settings:
        assert told["setopt_append_crypt_shared_lib_search_path"] == [b"$SYSTEM"]


def test_a_proxy_that_is_reached_by_tls_is_checked() -> None:
    """By the authorities of the system, unless the application has another context."""
    context = HTTPProxyKMSConnect("https://proxy.example")._context
    assert context is not None and context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    given = ssl.create_default_context()
    assert HTTPProxyKMSConnect("https://proxy.example", given)._context is given
    assert HTTPProxyKMSConnect("http://proxy.example")._context is None


def test_a_proxy_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_headers_for_a_proxy_are_sent_as_http_has_them() -> None:
    sock: Any = Mock(recv=Mock(return_value=b""))
    connect = HTTPProxyKMSConnect("http://proxy.example", headers={"X-A": "\xfc"})
    with pytest.raises(OSError):
        connect._tunnel(sock, KMSConnectContext("h", 443, 10.0))
    assert b"X-A: \xfc\r\n" in sock.sendall.call_args.args[0]


@pytest.mark.parametrize("left", [None, 0.5, 0.0])
def test_a_request_may_fail_again_as_long_as_there_is_time(monkeypatch: pytest.MonkeyPatch, left: float | None) -> None:
    now = SimpleNamespace(time=1000.0)
    monkeypatch.setattr(_clock, "monotonic", lambda: now.time)

    def exchange(*_: Any) -> None:
        now.time = 1010.0 - (left or 0.0)
        raise AutoReconnect("x")

    service, request = Kms(Mock(), None), asked_for()
    monkeypatch.setattr(service, "_exchange", exchange)
    if left == 0.0:
        with pytest.raises(AutoReconnect):
            service.complete(request, 1010.0)
    else:
        service.complete(request, None if left is None else 1010.0)
    assert request.fail.called is (left != 0.0)


@pytest.mark.parametrize(
    ("own", "usual", "tls"),
    [
        (None, True, ["1", "1"]),
        ({}, True, ["1", "1"]),
        ({"aws": {}}, True, ["1", "2"]),
        ({"aws": {}, "kmip": {}}, False, ["1", "2"]),
    ],
)
def test_authorities_are_read_for_providers_without_options_of_their_own(
    own: Any, usual: bool, tls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(kms_tls, "_tls_from", lambda options: made.append(options) or str(len(made)))
    found = kms_tls.KmsTls(own, ["aws", "kmip", "local", "local:x"])
    assert ({"tls": True} in made[len(own or {}) :]) is usual
    assert (found._default is not None) is usual
    assert [found.of("aws"), found.of("kmip")] == tls


@pytest.mark.parametrize(
    ("headers", "kind", "why"),
    [
        ({"a b": "x"}, ConfigurationError, "invalid proxy header name: 'a b'"),
        ({5: "x"}, ConfigurationError, "invalid proxy header name: 5"),
        ({"a": "x\r\ny"}, ConfigurationError, "the value of the proxy header a is not allowed"),
        ({"a": 5}, ConfigurationError, "the value of the proxy header a is not allowed"),
        ({"hOst": "x"}, ConfigurationError, "the header Host must name the key management service"),
        ([1], TypeError, "headers must be a mapping such as a dict, not <class 'list'>"),
    ],
)
def test_headers_for_a_proxy_that_are_refused(headers: Any, kind: type[Exception], why: str) -> None:
    with pytest.raises(kind) as caught:
        HTTPProxyKMSConnect("http://proxy.example", headers=headers)
    assert str(caught.value) == why


def test_what_the_library_says_while_it_is_opened_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []
    monkeypatch.setattr(Handle, "log", lambda handle: logged.append(handle))
    opened = Handle(Settings(kms_providers=LOCAL))
    assert logged == [opened]

"""Handshake (the first command on every connection), and authentication of connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import bson

from gmongo import _clock
from gmongo._documents import Document, DocumentDict
from gmongo._redaction import redacted
from gmongo._traceback_scrub import clears_locals
from gmongo.cmap.connecting import ConnectTimeout, connect
from gmongo.cmap.hello import Hello, read_hello
from gmongo.cmap.pool_settings import ConnectionSettings
from gmongo.cmap.progress import AUTHENTICATION_STAGE, HELLO_STAGE, Progress
from gmongo.errors import AutoReconnect, ConfigurationError, OperationFailure
from gmongo.wire.compression import choose_compressor
from gmongo.wire.message import encode_op_msg, encode_op_query, next_request_id
from gmongo.wire.reply_schema import ERROR_SCHEMA, check
from gmongo.wire.timeout import interrupt_after, remaining

if TYPE_CHECKING:
    from gmongo.auth.authenticator import Authenticator
    from gmongo.cmap.server_connection import ServerConnection

_AUTHENTICATION_FIELDS = frozenset({"speculativeAuthenticate", "saslSupportedMechs"})


def choose_hello_name(options: ConnectionSettings) -> str:
    """Return ``hello`` with the Stable API or behind a load balancer, otherwise ``ismaster``."""
    return "hello" if options.server_api or options.load_balanced else "ismaster"


def build_handshake_command(options: ConnectionSettings) -> DocumentDict:
    """Return the hello command that a new connection sends first, without authentication fields."""
    command: DocumentDict = {choose_hello_name(options): 1, **options.server_api, "helloOk": True, "backpressure": True}
    command |= {"client": options.metadata, "compression": list(options.compressors)}
    if options.load_balanced:
        command["loadBalanced"] = True
    return command


@clears_locals
def establish(
    connection: ServerConnection,
    options: ConnectionSettings,
    ref: bool,
    on_hello: Callable[[], None] | None = None,
    deadline: float | None = None,
) -> Hello:
    """Connect to the server, perform the handshake and authenticate.

    Connections of monitors do not authenticate. `ref` is True if the timer for ``connectTimeoutMS``
    keeps the event loop alive. `on_hello` runs between the hello and the authentication, and must not
    switch greenlets. The authentication receives the remaining time until the `deadline` of the
    operation.
    """
    authentication = None
    command = build_handshake_command(options)
    if options.authenticator is not None and not connection.is_monitor:
        authentication = Authentication(connection, options, options.authenticator)
        command.update(authentication.hello_fields())
    progress = connection.progress = Progress(connection.address[0], options)
    limit = ConnectTimeout(connection, options.connect_timeout, ref)
    try:
        limit.begin()
        connect(connection, options, progress, limit)
        progress.begin(HELLO_STAGE)
        limit.begin_stage()
        hello = send_hello(connection, command, None)
        if options.load_balanced and hello.service_id is None:
            raise ConfigurationError(
                "Driver attempted to initialize in load balancing mode, but the server does not support this mode."
            )
        compressor = choose_compressor(options.compressors, hello.reply.get("compression"), options.zlib_level)
        connection.store_hello(hello, compressor)
        connection.service_id = hello.service_id if options.load_balanced else None
        if on_hello is not None:
            on_hello()
        if authentication is not None:
            progress.begin(AUTHENTICATION_STAGE)
            authentication.authenticate(hello, limit, remaining(deadline))
    except AutoReconnect:
        progress.record_failure()
        raise
    finally:
        limit.close()
    connection.progress = None
    return hello


def send_hello(connection: ServerConnection, command: Document, timeout: float | None) -> Hello:
    """Send a hello command, and return the checked reply. `timeout` (seconds) may be None."""
    request_id = next_request_id()
    body = bson.encode(command if "hello" not in command else {**command, "$db": "admin"})
    if "hello" in command:
        buffers = encode_op_msg(request_id, 0, body)
    else:
        buffers = encode_op_query(request_id, "admin.$cmd", body)
    started = _clock.monotonic()
    reply: Document = connection.exchange(request_id, buffers, timeout, bson.decode)
    if "speculativeAuthenticate" in command:
        reply = redacted(reply, command["speculativeAuthenticate"].get("payload"))
    return read_hello(reply, _clock.monotonic() - started)


class Authentication:
    """Authentication of one connection."""

    def __init__(self, connection: ServerConnection, options: ConnectionSettings, authenticator: Authenticator) -> None:
        self._connection = connection
        self._options = options
        self._authenticator = authenticator
        self._login = authenticator.login(connection.address[0])

    def hello_fields(self) -> DocumentDict:
        return self._login.hello_fields()

    def authenticate(self, hello: Hello, limit: ConnectTimeout, seconds: float | None) -> None:
        """Authenticate, and remove the authentication fields from the stored reply to the hello."""
        reply = dict(hello.reply)
        hello.reply = {field: value for field, value in reply.items() if field not in _AUTHENTICATION_FIELDS}
        if reply.get("arbiterOnly"):
            return  # an arbiter stores no users, so authentication is impossible
        limit.begin_stage(self._login.extra_login_seconds)
        self._login.authenticate(self._run_command, reply, seconds)
        self._connection.authentication = self

    @clears_locals
    def reauthenticate(self, seconds: float | None) -> None:
        """Authenticate again within ``connectTimeoutMS``, and within the remaining `seconds` of the operation."""
        extra_seconds, limit = self._login.extra_login_seconds, self._options.connect_timeout
        error = self._connection.make_timeout_error(limit, "connectTimeoutMS")
        if limit is not None:
            limit += extra_seconds
        seconds_left = seconds + extra_seconds if seconds is not None and self._login.extends_deadline else seconds
        if seconds_left is not None and (limit is None or seconds_left < limit):
            limit, error = seconds_left, self._connection.make_timeout_error(seconds)
        with interrupt_after(limit, error):
            self._login.authenticate_again(self._run_command, seconds)

    def _run_command(self, database: str, command: Document) -> Document:
        request_id = next_request_id()
        body = bson.encode({**command, **self._options.server_api, "$db": database})
        raw_reply = self._connection.exchange(request_id, encode_op_msg(request_id, 0, body), None, bson.decode)
        check(raw_reply, ERROR_SCHEMA)
        reply = redacted(raw_reply, command.get("payload"), (self._authenticator.credential.username,))
        if not reply.get("ok"):
            message = str(reply.get("errmsg") or "Authentication failed").rstrip(".")
            raise OperationFailure(f"{message} ({self._authenticator.credential})", reply.get("code"), reply)
        return reply

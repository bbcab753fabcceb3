"""The handshake: the first command on every connection, and what its reply tells about the server."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

import bson

from gmongo.cmap.options import ConnectionOptions
from gmongo.errors import ConfigurationError, OperationFailure
from gmongo.wire.limit import interrupt_after
from gmongo.wire.message import (
    DEFAULT_MAX_MESSAGE_SIZE,
    encode_op_msg,
    encode_op_query,
    next_request_id,
)

if TYPE_CHECKING:
    from gmongo.cmap.connection import Connection

# Servers older than these fields have these limits.
_MAX_BSON_SIZE = 16 * 1024 * 1024
_MAX_WRITE_BATCH_SIZE = 1000


class Hello:
    """The reply to a hello, with what connections and commands need of it as attributes.

    :param reply: the reply.
    :param duration: seconds it took.
    """

    __slots__ = (
        "connection_id",
        "duration",
        "hello_ok",
        "is_mongos",
        "is_standalone",
        "max_bson_size",
        "max_message_size",
        "max_wire_version",
        "max_write_batch_size",
        "reply",
        "service_id",
        "sessions_supported",
    )

    def __init__(self, reply: Mapping[str, Any], duration: float) -> None:
        self.reply = reply
        self.duration = duration
        self.hello_ok: bool = bool(reply.get("helloOk"))
        self.is_mongos: bool = reply.get("msg") == "isdbgrid"
        self.is_standalone: bool = not self.is_mongos and "setName" not in reply
        self.max_bson_size: int = reply.get("maxBsonObjectSize", _MAX_BSON_SIZE)
        self.max_message_size: int = reply.get("maxMessageSizeBytes", DEFAULT_MAX_MESSAGE_SIZE)
        self.max_wire_version: int = reply.get("maxWireVersion", 0)
        self.max_write_batch_size: int = reply.get("maxWriteBatchSize", _MAX_WRITE_BATCH_SIZE)
        self.sessions_supported: bool = reply.get("logicalSessionTimeoutMinutes") is not None
        self.connection_id: int | None = reply.get("connectionId")
        self.service_id: Any = reply.get("serviceId")


def handshake_command(options: ConnectionOptions) -> dict[str, Any]:
    """The hello of a new connection. With a Stable API, or behind a load balancer, it is never the legacy one."""
    modern = bool(options.server_api) or options.load_balanced
    command: dict[str, Any] = {"hello" if modern else "ismaster": 1, **options.server_api}
    command["helloOk"] = True
    command["client"] = options.metadata
    command["compression"] = list(options.compressors)
    if options.load_balanced:
        command["loadBalanced"] = True
    return command


def establish(connection: Connection, options: ConnectionOptions, ref: bool = True) -> Hello:
    """Connect and shake hands, all within ``connectTimeoutMS``.

    :param ref: whether the timer keeps the hub running.
    :raises AutoReconnect: the server could not be reached, or closed the connection.
    :raises OperationFailure: the server refused the handshake.
    """
    limit = options.connect_timeout
    with interrupt_after(limit, connection._timeout_error(limit or 0), ref):
        connection.connect()
        hello = say_hello(connection, handshake_command(options), None)
    if options.load_balanced and hello.service_id is None:
        raise ConfigurationError(
            "Driver attempted to initialize in load balancing mode, but the server does not support this mode."
        )
    connection.established(hello)
    return hello


def say_hello(connection: Connection, command: Mapping[str, Any], timeout: float | None) -> Hello:
    """Send a hello of any kind and wait for its reply.

    :param timeout: seconds; None is without limit.
    :raises OperationFailure: the server replied with an error.
    """
    request_id = next_request_id()
    body = bson.encode(command if "hello" not in command else {**command, "$db": "admin"})
    if "hello" in command:
        buffers = encode_op_msg(request_id, 0, body)
    else:
        buffers = encode_op_query(request_id, "admin.$cmd", body)
    started = monotonic()
    reply = connection.exchange(request_id, buffers, timeout)
    return read_hello(bson.decode(reply.body), monotonic() - started)


def read_hello(reply: Mapping[str, Any], duration: float) -> Hello:
    """Check that a hello succeeded.

    :raises OperationFailure: it did not.
    """
    if not reply.get("ok"):
        message = reply.get("errmsg") or reply.get("$err") or "hello failed"
        raise OperationFailure(message, reply.get("code"), reply)
    return Hello(reply, duration)

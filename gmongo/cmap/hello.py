"""The reply to a hello, checked field by field: it comes from a peer that may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bson.objectid import ObjectId

from gmongo.errors import OperationFailure, ProtocolError
from gmongo.wire.address import parse_address
from gmongo.wire.message import DEFAULT_MAX_MESSAGE_SIZE

# Servers older than these fields have these limits.
_MAX_BSON_SIZE = 16 * 1024 * 1024
_MAX_WRITE_BATCH_SIZE = 1000


_ADDRESS_LISTS = ("hosts", "passives", "arbiters")
_ADDRESSES = ("me", "primary")
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(_ADDRESS_LISTS, list),
    **dict.fromkeys((*_ADDRESSES, "setName"), str),
    **dict.fromkeys(("tags", "topologyVersion", "lastWrite", "$clusterTime"), Mapping),
    "electionId": ObjectId,
    **dict.fromkeys(
        (
            "connectionId",
            "logicalSessionTimeoutMinutes",
            "maxBsonObjectSize",
            "maxMessageSizeBytes",
            "maxWireVersion",
            "maxWriteBatchSize",
            "minWireVersion",
            "setVersion",
        ),
        (int, float),
    ),
}


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


def read_hello(reply: Mapping[str, Any], duration: float) -> Hello:
    """Check that a hello succeeded, and that its fields are what they should be.

    :raises OperationFailure: it did not succeed.
    :raises ProtocolError: a field has the wrong type.
    """
    if not reply.get("ok"):
        message = reply.get("errmsg") or reply.get("$err") or "hello failed"
        raise OperationFailure(message, reply.get("code"), reply)
    reply = {field: value for field, value in reply.items() if value is not None}
    for field, kind in _KINDS.items():
        if field in reply and not isinstance(value := reply[field], kind):
            raise ProtocolError(f"field {field} of a hello has an unexpected type: {value!r}")
    _check_addresses(reply)
    version = reply.get("topologyVersion")
    if version is not None and not (
        isinstance(version.get("processId"), ObjectId) and isinstance(version.get("counter"), int)
    ):
        raise ProtocolError(f"field topologyVersion of a hello lacks processId or counter: {version!r}")
    return Hello(reply, duration)


def _check_addresses(reply: Mapping[str, Any]) -> None:
    texts = [text for field in _ADDRESS_LISTS for text in reply.get(field) or ()]
    texts += [reply[field] for field in _ADDRESSES if reply.get(field)]
    for text in texts:
        try:
            parse_address(text)
        except (ValueError, AttributeError) as error:
            raise ProtocolError(f"a hello has an address that cannot be read: {text!r}") from error

"""Checked replies to hello commands. The checks are necessary, because the peer may not be a MongoDB server."""

from __future__ import annotations

from bson.objectid import ObjectId

from gmongo._documents import Document
from gmongo._server_facts import sizes
from gmongo.errors import OperationFailure
from gmongo.wire.reply_schema import ERROR_SCHEMA, HELLO_NUMBERS_SCHEMA, HELLO_SCHEMA, check


class Hello:
    """Checked reply to a hello command. `duration` is the round trip time in seconds."""

    def __init__(self, reply: Document, duration: float) -> None:
        self.reply = reply
        self.duration = duration
        self.hello_ok: bool = bool(reply.get("helloOk"))
        self.is_mongos: bool = reply.get("msg") == "isdbgrid"
        # A replica set member without a configuration replies with `isreplicaset`.
        in_replica_set = "setName" in reply or bool(reply.get("isreplicaset"))
        self.is_standalone: bool = not self.is_mongos and not in_replica_set
        self.max_bson_size: int = reply.get("maxBsonObjectSize", sizes.MAX_BSON_SIZE)
        self.max_command_size = self.max_bson_size + sizes.COMMAND_OVERHEAD
        self.max_message_size: int = reply.get("maxMessageSizeBytes", sizes.MAX_MESSAGE_SIZE)
        # Maximum size in bytes of a batch of writes. Only automatic encryption sets a lower maximum.
        self.max_batch_size: int = self.max_message_size
        self.max_wire_version: int = reply.get("maxWireVersion", 0)
        self.max_write_batch_size: int = reply.get("maxWriteBatchSize", sizes.MAX_WRITE_BATCH_SIZE)
        self.sessions_supported: bool = reply.get("logicalSessionTimeoutMinutes") is not None
        self.connection_id: int | None = reply.get("connectionId")
        self.service_id: ObjectId | None = reply.get("serviceId")


def read_hello(reply: Document, duration: float) -> Hello:
    """Check a reply to a hello command and the fields of the reply. Return the checked reply."""
    check(reply, ERROR_SCHEMA, "a hello")
    if not reply.get("ok"):
        message = reply.get("errmsg") or reply.get("$err") or "hello failed"
        raise OperationFailure(message, reply.get("code"), reply)
    check(reply, HELLO_SCHEMA, "a hello")
    fields = {field: value for field, value in reply.items() if value is not None}
    for field in HELLO_NUMBERS_SCHEMA.keys() & fields.keys():
        # Omit a number that is out of range. An error would make each operation wait until server
        # selection times out. Without a wire version, the compatibility check fails immediately.
        number = fields.pop(field)
        if HELLO_NUMBERS_SCHEMA[field](number) is None:
            fields[field] = int(number)
    return Hello(fields, duration)

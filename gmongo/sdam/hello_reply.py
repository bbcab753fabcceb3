"""Reply to a heartbeat, for heartbeat listeners."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson.objectid import ObjectId

from gmongo._documents import Document, DocumentDict
from gmongo.sdam.server_description import ServerDescription
from gmongo.wire.address import Address


def _described(name: str) -> Any:
    """Return a property with the value of the :class:`ServerDescription` of the reply."""

    def value(reply: DocumentDict) -> object:
        return getattr(ServerDescription(("", None), reply), name)

    return property(value, doc=getattr(ServerDescription, name).__doc__)


def _field(name: str, doc: str, default: object = None) -> Any:
    """Return a property with a field of the reply."""

    def value(reply: DocumentDict) -> object:
        return reply.get(name, default)

    return property(value, doc=doc)


class HelloReply(DocumentDict):
    """Reply to a hello: a document with the attributes of PyMongo's ``Hello``.

    :param document: the reply; the new document is a shallow copy.
    :param awaitable: True for the reply to an awaitable hello, which the server sends after a change.
    """

    def __init__(self, document: Document, awaitable: bool = False) -> None:
        super().__init__(document)
        self.awaitable = awaitable

    @property
    def document(self) -> DocumentDict:
        """Shallow copy of the reply as a plain document."""
        return dict(self)

    server_type: int = _described("server_type")
    is_writable: bool = _described("is_writable")
    is_readable: bool = _described("is_readable")
    all_hosts: frozenset[Address] = _described("all_hosts")
    tags: Document = _described("tags")
    primary: Address | None = _described("primary")
    me: Address | None = _described("me")
    replica_set_name: str | None = _described("replica_set_name")
    set_version: int | None = _described("set_version")
    election_id: ObjectId | None = _described("election_id")
    max_bson_size: int = _described("max_bson_size")
    max_message_size: int = _described("max_message_size")
    max_write_batch_size: int = _described("max_write_batch_size")
    min_wire_version: int = _described("min_wire_version")
    max_wire_version: int = _described("max_wire_version")
    logical_session_timeout_minutes: int | None = _described("logical_session_timeout_minutes")
    cluster_time: Document | None = _described("cluster_time")
    topology_version: Document | None = _described("topology_version")
    compressors: list[str] | None = _field("compression", "Compressors that client and server support.")
    sasl_supported_mechs: list[str] = _field("saslSupportedMechs", "Authentication mechanisms of the user.", [])
    speculative_authenticate: Document | None = _field("speculativeAuthenticate", "First step of the authentication.")
    service_id: ObjectId | None = _field("serviceId", "ID of the service behind a load balancer.")
    hello_ok: bool = _field("helloOk", "True if the server supports the ``hello`` command.", False)
    connection_id: int | None = _field("connectionId", "ID of the connection on the server.")

    @property
    def last_write_date(self) -> datetime | None:
        """Time of the last write that the member applied."""
        date: datetime | None = self.get("lastWrite", {}).get("lastWriteDate")
        return date

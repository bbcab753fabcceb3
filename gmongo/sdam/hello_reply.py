"""The reply to a check, as listeners of heartbeats get it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson.objectid import ObjectId

from gmongo._documents import Document, DocumentDict
from gmongo.sdam.server_description import ServerDescription
from gmongo.wire.address import Address


def _described(name: str) -> Any:
    """A property with the value of the :class:`ServerDescription` that follows from the reply."""

    def value(reply: DocumentDict) -> object:
        return getattr(ServerDescription(("", None), reply), name)

    return property(value, doc=getattr(ServerDescription, name).__doc__)


def _field(name: str, doc: str, default: object = None) -> Any:
    """A property with a field of the reply."""

    def value(reply: DocumentDict) -> object:
        return reply.get(name, default)

    return property(value, doc=doc)


class HelloReply(DocumentDict):
    """The reply to a hello: a document, with the attributes that PyMongo's ``Hello`` has.

    :param document: the reply; the new document is a shallow copy.
    :param awaitable: whether the server answered only when something changed.
    """

    def __init__(self, document: Document, awaitable: bool = False) -> None:
        super().__init__(document)
        self.awaitable = awaitable

    @property
    def document(self) -> DocumentDict:
        """The reply as a plain document, a shallow copy."""
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
    compressors: list[str] | None = _field("compression", "The compressors that both sides have.")
    sasl_supported_mechs: list[str] = _field("saslSupportedMechs", "The authentication mechanisms of the user.", [])
    speculative_authenticate: Document | None = _field("speculativeAuthenticate", "The first step of authentication.")
    service_id: ObjectId | None = _field("serviceId", "The service behind a load balancer.")
    hello_ok: bool = _field("helloOk", "True if the server knows the command ``hello``.", False)
    connection_id: int | None = _field("connectionId", "The number of the connection on the server.")

    @property
    def last_write_date(self) -> datetime | None:
        """When the member last applied a write."""
        date: datetime | None = self.get("lastWrite", {}).get("lastWriteDate")
        return date

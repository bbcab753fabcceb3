"""Reply to the hello command of a heartbeat, in the form that heartbeat listeners receive."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson.objectid import ObjectId

from gmongo._documents import Document, DocumentDict
from gmongo.sdam.server_description import ServerDescription
from gmongo.wire.address import Address


def _description_property(name: str) -> Any:
    """Return a property that computes the attribute `name` of a server description from the reply."""
    doc = getattr(ServerDescription, name).__doc__
    return property(lambda reply: getattr(ServerDescription(("", None), reply), name), doc=doc)


def _reply_property(name: str, doc: str, default: object = None) -> Any:
    """Return a property for the field `name` of a reply. A missing field has the value `default`."""
    return property(lambda reply: reply.get(name, default), doc=doc)


class HelloReply(DocumentDict):
    """Reply to a hello command: a document that also has the attributes of PyMongo's ``Hello``.

    :param document: the reply of the server. This object is a shallow copy of the reply.
    :param awaitable: True for the reply to an awaitable hello. The server sends this reply after a
        change of its state, or after a time limit.
    """

    def __init__(self, document: Document, awaitable: bool = False) -> None:
        super().__init__(document)
        self.awaitable = awaitable

    @property
    def document(self) -> DocumentDict:
        """Shallow copy of the reply as a plain dict."""
        return dict(self)

    server_type: int = _description_property("server_type")
    is_writable: bool = _description_property("is_writable")
    is_readable: bool = _description_property("is_readable")
    all_hosts: frozenset[Address] = _description_property("all_hosts")
    tags: Document = _description_property("tags")
    primary: Address | None = _description_property("primary")
    me: Address | None = _description_property("me")
    replica_set_name: str | None = _description_property("replica_set_name")
    set_version: int | None = _description_property("set_version")
    election_id: ObjectId | None = _description_property("election_id")
    max_bson_size: int = _description_property("max_bson_size")
    max_message_size: int = _description_property("max_message_size")
    max_write_batch_size: int = _description_property("max_write_batch_size")
    min_wire_version: int = _description_property("min_wire_version")
    max_wire_version: int = _description_property("max_wire_version")
    logical_session_timeout_minutes: int | None = _description_property("logical_session_timeout_minutes")
    cluster_time: Document | None = _description_property("cluster_time")
    topology_version: Document | None = _description_property("topology_version")
    compressors: list[str] | None = _reply_property("compression", "Compressors that client and server support.")
    sasl_supported_mechs: list[str] = _reply_property(
        "saslSupportedMechs", "Authentication mechanisms of the user.", []
    )
    speculative_authenticate: Document | None = _reply_property(
        "speculativeAuthenticate", "Reply of the server to the speculative authentication."
    )
    service_id: ObjectId | None = _reply_property("serviceId", "ID of the service behind a load balancer.")
    hello_ok: bool = _reply_property("helloOk", "True if the server supports the ``hello`` command.", False)
    connection_id: int | None = _reply_property("connectionId", "ID of the connection on the server.")

    @property
    def last_write_date(self) -> datetime | None:
        """Time of the last write that this member has applied."""
        date: datetime | None = self.get("lastWrite", {}).get("lastWriteDate")
        return date

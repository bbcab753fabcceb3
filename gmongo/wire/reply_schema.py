"""What the fields of a reply must look like: the one place that says it. A server may be anything.

What the driver takes out of a reply is checked when it is taken, so that one lie does no harm beyond its connection,
which is closed. What nothing reads is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite
from numbers import Number

import bson
from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from gmongo._documents import Document, Value
from gmongo._short_text import short
from gmongo.errors import ProtocolError
from gmongo.wire.address import parse_address

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
# Servers announce 48 MB. Ten times that leaves room for later ones, and bounds the memory of one reply.
_LARGEST_SIZE = 480_000_000
# A replica set has at most 50 members.
_MOST_HOSTS = 256
# What every command carries along from now on must stay small; a true cluster time has about 100 bytes.
_LARGEST_CLUSTER_TIME = 1024
_LONGEST_HASH = 64
_SHOWN = 100

# Returns the rule that a value breaks, to follow "must be", or None.
Check = Callable[[Value], str | None]


def kind(rule: str, *types: type) -> Check:
    """A check of the type alone."""
    return lambda value: None if isinstance(value, types) else rule


def integer(lowest: int, highest: int = INT32_MAX) -> Check:
    """A whole number in a range; some servers send it as a double."""
    rule = f"an integer from {lowest} to {highest}"

    def check(value: Value) -> str | None:
        return None if is_integer(value) and lowest <= value <= highest else rule

    return check


def is_integer(value: object) -> bool:
    """Whether it is a whole number, be it sent as an integer or as a double."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and isfinite(value) and value.is_integer()
    )


def list_of(what: str, is_one: Callable[[Value], bool]) -> Check:
    """A list whose elements all satisfy `is_one`."""
    rule = f"a list of {what}"
    return lambda value: None if isinstance(value, list) and all(map(is_one, value)) else rule


def is_document(value: object) -> bool:
    """Whether it is a document."""
    return isinstance(value, Mapping)


def is_text(value: object) -> bool:
    """Whether it is a string; code is another type, though ``bson`` derives it from this one."""
    return value.__class__ is str


def _text(value: object) -> str | None:
    return None if is_text(value) else "a string"


def _address(value: Value) -> str | None:
    try:
        parse_address(value)
    except (ValueError, AttributeError, TypeError):
        return "an address"
    return None


def _addresses(value: object) -> str | None:
    if not isinstance(value, list) or any(map(_address, value)):
        return "a list of addresses"
    return None if len(value) <= _MOST_HOSTS else f"a list of at most {_MOST_HOSTS} addresses"


def _topology_version(value: Value) -> str | None:
    if is_document(value) and isinstance(value.get("processId"), ObjectId) and isinstance(value.get("counter"), int):
        return None
    return "a document with a processId and a counter"


def _cluster_time(value: Value) -> str | None:
    if not is_document(value) or not isinstance(value.get("clusterTime"), Timestamp):
        return "a document with a clusterTime"
    signature = value.get("signature")
    if len(value) == 2 and isinstance(signature, dict) and len(signature) == 2:  # as all servers send it
        mac, key = signature.get("hash"), signature.get("keyId")
        if isinstance(mac, bytes) and len(mac) <= _LONGEST_HASH and isinstance(key, int):
            return None
    return None if len(bson.encode(value)) <= _LARGEST_CLUSTER_TIME else f"at most {_LARGEST_CLUSTER_TIME} bytes long"


def _last_write(value: Value) -> str | None:
    if is_document(value) and isinstance(value.get("lastWriteDate"), (datetime, type(None))):
        return None
    return "a document with a date lastWriteDate"


def _has_index(value: Value) -> bool:
    return is_document(value) and isinstance(value.get("index"), int)


LIST = kind("a list", list)
DOCUMENTS = list_of("documents", is_document)
DOCUMENT = kind("a document", Mapping)
COUNT = integer(0, INT64_MAX)
_NUMBER = kind("a number", Number)
TEXT = _text
TEXT_OR_LIST = kind("a string or a list", str, list)
CLUSTER_TIME = _cluster_time
_SIZE = integer(1, _LARGEST_SIZE)

ERROR: Mapping[str, Check] = {
    "ok": _NUMBER,
    "code": integer(-INT32_MAX - 1),
    "errmsg": TEXT,
    "$err": TEXT,
    "errorLabels": list_of("strings", is_text),
    "topologyVersion": _topology_version,
    "writeConcernError": DOCUMENT,
}
"""Of a reply that is, or has, an error."""

WRITE_CONCERN_ERROR: Mapping[str, Check] = {
    "code": ERROR["code"],
    "errmsg": TEXT,
    "errInfo": DOCUMENT,
}
"""Of a ``writeConcernError``."""

WRITE_ERROR: Mapping[str, Check] = {"index": integer(0), "code": ERROR["code"], "errmsg": TEXT}
"""Of an element of ``writeErrors``."""

TIMES: Mapping[str, Check] = {
    "$clusterTime": CLUSTER_TIME,
    "operationTime": kind("a timestamp", Timestamp),
    "recoveryToken": DOCUMENT,
}
"""Of any reply: what goes with later commands."""

OWN_FIELDS = ERROR.keys() | TIMES.keys()
"""What the driver reads in the reply to any command."""

HELLO: Mapping[str, Check] = {
    **dict.fromkeys(("hosts", "passives", "arbiters"), _addresses),
    **dict.fromkeys(("me", "primary"), lambda value: _address(value) if value else None),
    "setName": TEXT,
    "tags": DOCUMENT,
    "topologyVersion": _topology_version,
    "lastWrite": _last_write,
    "$clusterTime": CLUSTER_TIME,
    "electionId": kind("an ObjectId", ObjectId),
    "serviceId": kind("an ObjectId", ObjectId),
    "speculativeAuthenticate": DOCUMENT,
    "saslSupportedMechs": list_of("strings", is_text),
}
"""Of a hello."""

HELLO_NUMBERS: Mapping[str, Check] = {
    "connectionId": integer(-INT64_MAX, INT64_MAX),
    "logicalSessionTimeoutMinutes": integer(0),
    "maxBsonObjectSize": _SIZE,
    "maxMessageSizeBytes": _SIZE,
    "maxWireVersion": integer(0),
    "maxWriteBatchSize": integer(1),
    "minWireVersion": integer(0),
    "setVersion": integer(-INT64_MAX, INT64_MAX),
}
"""Of a hello, too; the driver computes with these."""

CURSOR: Mapping[str, Check] = {
    "id": integer(-INT64_MAX - 1, INT64_MAX),
    "ns": lambda value: None if is_text(value) and "." in value else "a database and a collection with a dot between",
    "postBatchResumeToken": DOCUMENT,
}
"""Of the ``cursor`` of a reply, beside its batch."""

WRITE: Mapping[str, Check] = {
    "n": integer(0),
    "nModified": integer(0),
    "writeErrors": list_of("documents with an index", lambda each: _has_index(each) and not broken(each, WRITE_ERROR)),
    "upserted": list_of("documents with an index and an _id", lambda each: _has_index(each) and "_id" in each),
    "writeConcernError": DOCUMENT,
}
"""Of the reply to an insert, update or delete."""


def broken(document: Document, checks: Mapping[str, Check]) -> tuple[str, str] | None:
    """The first field that breaks its rule, and the rule. Fields that are not there, or null, break none."""
    for field, check in checks.items():
        value = document.get(field)
        if value is not None:
            rule = check(value)
            if rule is not None:
                return field, rule
    return None


def check(document: Document, checks: Mapping[str, Check], where: str = "a reply") -> None:
    """Refuse a reply, or a part of one, that is not what it has to be.

    :param checks: by field.
    :param where: the field is, for the message.
    :raises ProtocolError: a field breaks its rule.
    """
    found = broken(document, checks)
    if found is not None:
        field, rule = found
        raise unexpected(f"{field} of {where}", rule, document[field])


def unexpected(what: str, rule: str, value: object) -> ProtocolError:
    """The error for a value that breaks its rule; it shows the beginning of the value."""
    return ProtocolError(f"{what} must be {rule}, not {_short(value)}")


def _short(value: object) -> str:
    text = short(value)  # however large and deep the value is
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

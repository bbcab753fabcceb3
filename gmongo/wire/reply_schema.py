"""Rules for the values of reply fields. A peer may send malformed replies.

The driver checks only the fields that it reads. A malformed reply closes only the connection that
received the reply.
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
from gmongo._truncated_repr import short
from gmongo.errors import ProtocolError
from gmongo.wire.address import parse_address

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
# Maximum message size in bytes that a server may announce, which limits the memory for one reply.
# Current servers announce 48 MB, a tenth of this limit.
_LARGEST_SIZE = 480_000_000
_MAX_HOSTS = 256  # Addresses in one list of a hello reply. A replica set has at most 50 members.
_LARGEST_CLUSTER_TIME = 1024  # Maximum bytes of a cluster time, which usually has 100 bytes.
_LONGEST_HASH = 64
_MAX_SHOWN_CHARACTERS = 100

# A check returns None for a valid value, otherwise the violated rule: the text after "must be" in the error.
Check = Callable[[Value], str | None]


def of_type(rule: str, *types: type) -> Check:
    """Return a check that a value has one of the types. `rule` is the text after "must be" in the error."""
    return lambda value: None if isinstance(value, types) else rule


def integer(lowest: int, highest: int = INT32_MAX) -> Check:
    """Return a check that a value is an integer in a range. Doubles with integer values are valid."""
    rule = f"an integer from {lowest} to {highest}"
    return lambda value: None if is_integer(value) and lowest <= value <= highest else rule


def is_integer(value: object) -> bool:
    """Return True for an integer or a double with an integer value."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and isfinite(value) and value.is_integer()
    )


def list_of(description: str, is_valid: Callable[[Value], bool]) -> Check:
    """Return a check that all list elements satisfy `is_valid`. Error texts contain `description`."""
    rule = f"a list of {description}"
    return lambda value: None if isinstance(value, list) and all(map(is_valid, value)) else rule


def is_document(value: object) -> bool:
    """Return True if a value is a document."""
    return isinstance(value, Mapping)


def is_text(value: object) -> bool:
    """Return True for a string, but not for the subclass ``bson.Code``."""
    return value.__class__ is str


def _check_address(value: Value) -> str | None:
    try:
        parse_address(value)
    except (ValueError, AttributeError, TypeError):
        return "an address"
    return None


def _check_addresses(value: object) -> str | None:
    if not isinstance(value, list) or any(map(_check_address, value)):
        return "a list of addresses"
    return None if len(value) <= _MAX_HOSTS else f"a list of at most {_MAX_HOSTS} addresses"


def _check_topology_version(value: Value) -> str | None:
    if is_document(value) and isinstance(value.get("processId"), ObjectId) and isinstance(value.get("counter"), int):
        return None
    return "a document with a processId and a counter"


def _check_cluster_time(value: Value) -> str | None:
    if not is_document(value) or not isinstance(value.get("clusterTime"), Timestamp):
        return "a document with a clusterTime"
    signature = value.get("signature")
    if len(value) == 2 and isinstance(signature, dict) and len(signature) == 2:
        # fast path for a cluster time without additional fields
        mac, key_id = signature.get("hash"), signature.get("keyId")
        if isinstance(mac, bytes) and len(mac) <= _LONGEST_HASH and isinstance(key_id, int):
            return None
    return None if len(bson.encode(value)) <= _LARGEST_CLUSTER_TIME else f"at most {_LARGEST_CLUSTER_TIME} bytes long"


def _check_last_write(value: Value) -> str | None:
    if is_document(value) and isinstance(value.get("lastWriteDate"), (datetime, type(None))):
        return None
    return "a document with a date lastWriteDate"


def _has_index(value: Value) -> bool:
    return is_document(value) and isinstance(value.get("index"), int)


LIST = of_type("a list", list)
DOCUMENTS = list_of("documents", is_document)
DOCUMENT = of_type("a document", Mapping)
COUNT = integer(0, INT64_MAX)
_NUMBER = of_type("a number", Number)
TEXT: Check = lambda value: None if is_text(value) else "a string"  # noqa: E731
TEXT_OR_LIST = of_type("a string or a list", str, list)
CLUSTER_TIME = _check_cluster_time
_SIZE = integer(1, _LARGEST_SIZE)

ERROR_SCHEMA: Mapping[str, Check] = {
    "ok": _NUMBER,
    "code": integer(-INT32_MAX - 1),
    "errmsg": TEXT,
    "$err": TEXT,
    "errorLabels": list_of("strings", is_text),
    "topologyVersion": _check_topology_version,
    "writeConcernError": DOCUMENT,
}
"""Checks of the fields that report an error, in any reply."""

WRITE_CONCERN_ERROR_SCHEMA: Mapping[str, Check] = {"code": ERROR_SCHEMA["code"], "errmsg": TEXT, "errInfo": DOCUMENT}
"""Checks of a ``writeConcernError``."""

WRITE_ERROR_SCHEMA: Mapping[str, Check] = {"index": integer(0), "code": ERROR_SCHEMA["code"], "errmsg": TEXT}
"""Checks of an element of ``writeErrors``."""

SESSION_SCHEMA: Mapping[str, Check] = {
    "$clusterTime": CLUSTER_TIME,
    "operationTime": of_type("a timestamp", Timestamp),
    "recoveryToken": DOCUMENT,
}
"""Checks of the fields that the driver sends back to the server in later commands. Any reply may have these fields."""

DRIVER_FIELDS = ERROR_SCHEMA.keys() | SESSION_SCHEMA.keys()
"""Fields that the driver reads in replies to all commands."""

HELLO_SCHEMA: Mapping[str, Check] = {
    **dict.fromkeys(("hosts", "passives", "arbiters"), _check_addresses),
    **dict.fromkeys(("me", "primary"), lambda value: _check_address(value) if value else None),
    "setName": TEXT,
    "tags": DOCUMENT,
    "topologyVersion": _check_topology_version,
    "lastWrite": _check_last_write,
    "$clusterTime": CLUSTER_TIME,
    "electionId": of_type("an ObjectId", ObjectId),
    "serviceId": of_type("an ObjectId", ObjectId),
    "speculativeAuthenticate": DOCUMENT,
    "saslSupportedMechs": list_of("strings", is_text),
}
"""Checks of the non-numeric fields in a hello reply."""

HELLO_NUMBERS_SCHEMA: Mapping[str, Check] = {
    "connectionId": integer(-INT64_MAX, INT64_MAX),
    "logicalSessionTimeoutMinutes": integer(0),
    "maxBsonObjectSize": _SIZE,
    "maxMessageSizeBytes": _SIZE,
    "maxWireVersion": integer(0),
    "maxWriteBatchSize": integer(1),
    "minWireVersion": integer(0),
    "setVersion": integer(-INT64_MAX, INT64_MAX),
}
"""Checks of the numbers in a hello reply."""

CURSOR_SCHEMA: Mapping[str, Check] = {
    "id": integer(-INT64_MAX - 1, INT64_MAX),
    "ns": lambda value: None if is_text(value) and "." in value else "a database name, a dot and a collection name",
    "postBatchResumeToken": DOCUMENT,
}
"""Checks of the field ``cursor`` of a reply, except its batch."""

WRITE_SCHEMA: Mapping[str, Check] = {
    "n": integer(0),
    "nModified": integer(0),
    "writeErrors": list_of(
        "documents with an index", lambda each: _has_index(each) and not first_violation(each, WRITE_ERROR_SCHEMA)
    ),
    "upserted": list_of("documents with an index and an _id", lambda each: _has_index(each) and "_id" in each),
    "writeConcernError": DOCUMENT,
}
"""Checks of the reply to an insert, update or delete."""


def first_violation(document: Document, checks: Mapping[str, Check]) -> tuple[str, str] | None:
    """Return the first invalid field and its violated rule, or None. Fields may be absent or null."""
    for field, check in checks.items():
        value = document.get(field)
        if value is not None and (rule := check(value)) is not None:
            return field, rule
    return None


def check(document: Document, checks: Mapping[str, Check], document_name: str = "a reply") -> None:
    """Raise ProtocolError for an invalid field. The error contains `document_name`."""
    violation = first_violation(document, checks)
    if violation is not None:
        field, rule = violation
        raise unexpected(f"{field} of {document_name}", rule, document[field])


def unexpected(subject: str, rule: str, value: object) -> ProtocolError:
    """Return the error for an invalid value, with the rule and the beginning of the value."""
    text = short(value)  # `short` truncates large and deep values
    text = text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}..."
    return ProtocolError(f"{subject} must be {rule}, not {text}")

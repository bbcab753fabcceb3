"""The context of a command: the request, and the access for the command's reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bson.timestamp import Timestamp

from gmongo.testing import clock
from gmongo.testing.command import Request, error
from gmongo.testing.store.access import Access
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import failed_to_parse, invalid_namespace, namespace_not_found
from gmongo.testing.store.expressions import evaluate
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.state import State
from gmongo.testing.store.values import type_name
from gmongo.testing.unsupported import not_supported

# The maximum length in bytes of a namespace: the name of the database, a dot, and the name of the collection.
_MAX_NAMESPACE_BYTES = 255


@dataclass
class CommandContext:
    """The context of one command."""

    state: State  # the state of the deployment
    request: Request  # the received command
    access: Access  # the access to current data, to past data, or to the data of a transaction
    # The logical time of a snapshot read outside of transactions, or None for other commands.
    snapshot: Timestamp | None = None

    @property
    def body(self) -> Document:
        return self.request.body

    @property
    def database(self) -> str:
        return self.request.database

    @cached_property
    def collection_name(self) -> str:
        name = self.body[self.request.name]
        if type(name) is not str:
            raise failed_to_parse(f"collection name has invalid type {type_name(name)}")
        check_name(self.database, name, self.request.name in _WRITE_COMMANDS)
        return name

    @property
    def namespace(self) -> str:
        return f"{self.database}.{self.collection_name}"

    @cached_property
    def variables(self) -> Document:
        """The values of variables by name: ``NOW``, ``CLUSTER_TIME`` and the variables of ``let``."""
        values: Document = {"NOW": truncate_current_time()}
        if self.state.has_oplog:
            values["CLUSTER_TIME"] = self.state.now()
        for name, expression in (self.body.get("let") or {}).items():
            values[name] = evaluate(expression, {}, values)
        return values

    @cached_property
    def pace(self) -> Pace:
        loss_counts, member = self.state.loss_counts, self.request.member
        initial_loss_count = loss_counts[member]
        # The maxTimeMS of a getMore is not a time limit, but the longest wait for new documents.
        max_time_ms = None if self.request.name == "getMore" else self.body.get("maxTimeMS")
        return Pace(max_time_ms, lambda: loss_counts[member] != initial_loss_count, lambda: self.request.is_killed)

    def collation(self, collection: Collection | None = None) -> Collation:
        """Return the collation of the command. If the command has no collation, return the collection's collation."""
        spec = self.body.get("collation")
        if spec and collection is not None and collection.is_view and Collation.from_spec(spec) != collection.collation:
            raise error(167, "Cannot override a view's default collation")
        return Collation.from_spec(spec) if spec or collection is None else collection.collation

    def collection(self) -> Collection | None:
        """Return the command's collection or view. Return None if the collection does not exist."""
        collection = self.access.find_collection(self.database, self.collection_name)
        if collection is not None and collection.kind == "timeseries" and self.request.name not in _SERIES_COMMANDS:
            raise not_supported("a time series", self.request.name)
        return collection

    def require_collection(self) -> Collection:
        collection = self.collection()
        if collection is None:
            raise namespace_not_found(f"ns does not exist: {self.namespace}")
        return collection

    def ensure_collection(self) -> Collection:
        """Return the collection to which the command writes. Create a missing collection."""
        collection = self.collection()
        if collection is None:
            return self.access.create(self.database, self.collection_name, {})
        check_writable(collection)
        return collection


BUILT_IN_VARIABLES = dict.fromkeys(("NOW", "CLUSTER_TIME"))
_SERIES_COMMANDS = frozenset({"create", "drop", "find", "getMore", "insert"})
_WRITE_COMMANDS = frozenset({"create", "createIndexes", "delete", "findAndModify", "findandmodify", "insert", "update"})
# The values of NAME for which users can write to a collection `system.NAME`. The databases admin,
# config and local accept all values.
_WRITABLE_NAMES = frozenset({"buckets", "js", "profile", "users", "views"})
_INTERNAL_COLLECTIONS = frozenset({("local", "oplog.rs"), ("config", "transactions")})


def check_writable(collection: Collection) -> None:
    """Check that the collection is not a view."""
    if collection.is_view:
        raise error(166, f"Namespace {collection.namespace} is a view, not a collection")


def check_name(database: str, name: str, for_write: bool = False) -> None:
    """Check the name of a collection."""
    is_too_long = len(f"{database}.{name}".encode()) > _MAX_NAMESPACE_BYTES
    if not name or name.startswith(".") or "\0" in name or "$" in name or is_too_long:
        raise invalid_namespace(f"Invalid namespace specified '{database}.{name}'")
    system_name = name.startswith("system.") and name.split(".")[1]
    is_writable = system_name in _WRITABLE_NAMES or database in ("admin", "config", "local")
    if system_name and for_write and not is_writable:
        raise invalid_namespace(f"cannot write to '{database}.{name}'")
    if name.startswith("system.") or (database, name) in _INTERNAL_COLLECTIONS:
        raise not_supported("a system collection", f"{database}.{name}")


def truncate_current_time() -> Any:
    """Return the current time, rounded down to milliseconds like a BSON date."""
    now = clock.utc_now().replace(tzinfo=None)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)

"""The entities of a test: the map from their names, and how each type is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gmongo.client_session import ClientSession, TransactionOptions
from gmongo.collection import Collection
from gmongo.gridfs import GridFSBucket
from tests.spec.unified.bson_types import BSON
from tests.spec.unified.clients import ClientEntity
from tests.spec.unified.cursors import CursorEntity
from tests.spec.unified.encryption import explicit
from tests.spec.unified.schema import FormatError
from tests.spec.unified.threads import Thread
from tests.spec.unified.values import check_known, common_options, database_options, snake_case

if TYPE_CHECKING:
    from tests.spec.unified.runner import Run


@dataclass(frozen=True)
class Entity:
    """An entity.

    :param kind: its type: client, clientEncryption, database, collection, session, bucket, thread, cursor,
        topologyDescription, value.
    :param value: the object.
    :param client: the name of the client that it is of, if it is of one.
    """

    kind: str
    value: Any
    client: str | None = None


class Entities:
    """The entity map of one test."""

    def __init__(self) -> None:
        self._entities: dict[str, Entity] = {}
        self._lsids: dict[str, Any] = {}

    def add(self, name: str, entity: Entity) -> None:
        """Store an entity.

        :raises FormatError: there is one with this name.
        """
        if name in self._entities:
            raise FormatError(f"there is already an entity {name!r}")
        self._entities[name] = entity
        if entity.kind == "session":
            self._lsids[name] = entity.value.session_id

    def add_result(self, name: str, result: Any, client: str | None) -> None:
        """Store the result of an operation.

        :raises FormatError: it is not of a type that can be stored, or there is an entity with this name.
        """
        if isinstance(result, CursorEntity):
            self.add(name, Entity("cursor", result, client))
        elif isinstance(result, Collection):
            self.add(name, Entity("collection", result, client))
        elif isinstance(result, BSON) and result is not None:
            self.add(name, Entity("value", result))
        else:
            raise FormatError(f"the result for {name!r} cannot be an entity: {result!r}")

    def find(self, name: str) -> Entity:
        """The entity with this name.

        :raises FormatError: there is none.
        """
        if name not in self._entities:
            raise FormatError(f"there is no entity {name!r}")
        return self._entities[name]

    def get(self, kind: str, name: str) -> Any:
        """The object of an entity of this type.

        :raises FormatError: there is none, or it is of another type.
        """
        entity = self.find(name)
        if entity.kind != kind:
            raise FormatError(f"{name!r} must be a {kind}, but is a {entity.kind}")
        return entity.value

    def client(self, name: str) -> ClientEntity:
        """A client."""
        client = self.get("client", name)
        assert isinstance(client, ClientEntity)
        return client

    def session(self, name: str) -> ClientSession:
        """A session."""
        session = self.get("session", name)
        assert isinstance(session, ClientSession)
        return session

    def lsid(self, name: str) -> Any:
        """The ID of a session, which may have ended."""
        self.session(name)
        return self._lsids[name]

    def of_kind(self, kind: str) -> Iterator[Any]:
        """The objects of all entities of a type."""
        return (entity.value for entity in list(self._entities.values()) if entity.kind == kind)

    def __contains__(self, name: str) -> bool:
        return name in self._entities


def create(run: Run, specs: list[Mapping[str, Any]]) -> None:
    """Make entities in the order in which they are given.

    :raises FormatError: an entity is unknown, duplicate, or refers to one that is not there.
    """
    for spec in specs:
        if len(spec) != 1:
            raise FormatError(f"an entity has one type, was {spec}")
        ((kind, fields),) = spec.items()
        if kind not in _MAKERS:
            raise FormatError(f"unknown entity {kind!r}")
        run.entities.add(fields["id"], _MAKERS[kind](run, fields))


def _client(run: Run, spec: Mapping[str, Any]) -> Entity:
    entity = ClientEntity(spec, run.running, run.client_options)
    for name, events in entity.stored.items():
        run.entities.add(name, Entity("value", events))
    if run.expects_logs and entity.logs is None:
        entity.settle()
    return Entity("client", entity, entity.name)


def _database(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "client", "databaseName", "databaseOptions"}, "a database")
    client = run.entities.client(spec["client"]).client
    options = database_options(spec.get("databaseOptions", {}))
    return Entity("database", client.get_database(spec["databaseName"], **options), spec["client"])


def _collection(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "database", "collectionName", "collectionOptions"}, "a collection")
    database = run.entities.get("database", spec["database"])
    options = database_options(spec.get("collectionOptions", {}))
    collection = database.get_collection(spec["collectionName"], **options)
    return Entity("collection", collection, run.entities.find(spec["database"]).client)


def _session(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "client", "sessionOptions"}, "a session")
    client = run.entities.client(spec["client"]).client
    given = dict(spec.get("sessionOptions", {}))
    check_known(given, {"causalConsistency", "snapshot", "defaultTransactionOptions", "defaultTimeoutMS"}, "a session")
    options = {snake_case(name): value for name, value in given.items()}
    if "defaultTransactionOptions" in given:
        options["default_transaction_options"] = _transaction_options(given["defaultTransactionOptions"])
    session = client.start_session(**options)
    if run.cluster_time is not None:
        session.advance_cluster_time(run.cluster_time)
    return Entity("session", session, spec["client"])


def _transaction_options(given: Mapping[str, Any]) -> TransactionOptions:
    rest = dict(given)
    longest = rest.pop("maxCommitTimeMS", None)
    return TransactionOptions(**common_options(rest), max_commit_time_ms=longest)


def _bucket(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "database", "bucketOptions"}, "a bucket")
    database = run.entities.get("database", spec["database"])
    given = dict(spec.get("bucketOptions", {}))
    own = {name: given.pop(name) for name in ("bucketName", "chunkSizeBytes") if name in given}
    options = {snake_case(name): value for name, value in own.items()}
    bucket = GridFSBucket(database, **options, **common_options(given))
    return Entity("bucket", bucket, run.entities.find(spec["database"]).client)


def _client_encryption(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "clientEncryptionOpts"}, "a client encryption")
    options = spec["clientEncryptionOpts"]
    client = run.entities.client(options["keyVaultClient"]).client
    return Entity("clientEncryption", explicit(options, client), options["keyVaultClient"])


def _thread(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id"}, "a thread")
    return Entity("thread", Thread())


_MAKERS: dict[str, Callable[[Any, Mapping[str, Any]], Entity]] = {
    "client": _client,
    "clientEncryption": _client_encryption,
    "database": _database,
    "collection": _collection,
    "session": _session,
    "bucket": _bucket,
    "thread": _thread,
}

"""The entities of a case: the entity map, and the creation of entities of each type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gmongo.client_session import ClientSession, TransactionOptions
from gmongo.collection import Collection
from gmongo.gridfs import GridFSBucket
from tests.spec.unified.bson_types import BSON_CLASSES
from tests.spec.unified.clients import ClientEntity
from tests.spec.unified.cursors import CursorEntity
from tests.spec.unified.encryption import client_encryption
from tests.spec.unified.schema import FormatError
from tests.spec.unified.threads import Thread
from tests.spec.unified.values import check_known, common_options, database_options, snake_case

if TYPE_CHECKING:
    from tests.spec.unified.runner import Run


@dataclass(frozen=True)
class Entity:
    """An entity of a case: its type, its object, and the name of its client entity."""

    kind: str
    value: Any
    client_name: str | None = None


class Entities:
    """Entity map of one case: the entities, keyed by their names."""

    def __init__(self) -> None:
        self._entities: dict[str, Entity] = {}
        self._lsids: dict[str, Any] = {}

    def add(self, name: str, entity: Entity) -> None:
        """Add an entity."""
        if name in self._entities:
            raise FormatError(f"there is already an entity {name!r}")
        self._entities[name] = entity
        if entity.kind == "session":
            self._lsids[name] = entity.value.session_id

    def add_result(self, name: str, result: Any, client: str | None) -> None:
        """Add the result of an operation as an entity."""
        if isinstance(result, CursorEntity):
            self.add(name, Entity("cursor", result, client))
        elif isinstance(result, Collection):
            self.add(name, Entity("collection", result, client))
        elif isinstance(result, BSON_CLASSES) and result is not None:
            self.add(name, Entity("value", result))
        else:
            raise FormatError(f"the result for {name!r} cannot be an entity: {result!r}")

    def find(self, name: str) -> Entity:
        """Return the entity with the name."""
        if name not in self._entities:
            raise FormatError(f"there is no entity {name!r}")
        return self._entities[name]

    def get(self, kind: str, name: str) -> Any:
        """Return the object of the entity with the name and the type."""
        entity = self.find(name)
        if entity.kind != kind:
            raise FormatError(f"{name!r} must be a {kind}, but is a {entity.kind}")
        return entity.value

    def client(self, name: str) -> ClientEntity:
        client = self.get("client", name)
        assert isinstance(client, ClientEntity)
        return client

    def session(self, name: str) -> ClientSession:
        session = self.get("session", name)
        assert isinstance(session, ClientSession)
        return session

    def lsid(self, name: str) -> Any:
        """Return the session ID of a session entity, even if the session has ended."""
        self.session(name)
        return self._lsids[name]

    def objects_of_kind(self, kind: str) -> Iterator[Any]:
        """Return the objects of all entities of the type `kind`."""
        return (entity.value for entity in list(self._entities.values()) if entity.kind == kind)


def create(run: Run, specs: list[Mapping[str, Any]]) -> None:
    """Create the entities that `specs` defines, in the order of `specs`."""
    for spec in specs:
        if len(spec) != 1:
            raise FormatError(f"an entity must have one type, was {spec}")
        ((kind, fields),) = spec.items()
        if kind not in _FACTORIES:
            raise FormatError(f"unknown entity {kind!r}")
        run.entities.add(fields["id"], _FACTORIES[kind](run, fields))


def _create_client(run: Run, spec: Mapping[str, Any]) -> Entity:
    entity = ClientEntity(spec, run.deployment, run.client_options)
    for name, events in entity.stored_events.items():
        run.entities.add(name, Entity("value", events))
    if run.expects_logs and entity.logs is None:
        entity.wait_for_discovery()
    return Entity("client", entity, entity.name)


def _create_database(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "client", "databaseName", "databaseOptions"}, "a database")
    client = run.entities.client(spec["client"]).client
    options = database_options(spec.get("databaseOptions", {}))
    return Entity("database", client.get_database(spec["databaseName"], **options), spec["client"])


def _create_collection(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "database", "collectionName", "collectionOptions"}, "a collection")
    database = run.entities.get("database", spec["database"])
    options = database_options(spec.get("collectionOptions", {}))
    collection = database.get_collection(spec["collectionName"], **options)
    return Entity("collection", collection, run.entities.find(spec["database"]).client_name)


def _create_session(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "client", "sessionOptions"}, "a session")
    client = run.entities.client(spec["client"]).client
    fields = dict(spec.get("sessionOptions", {}))
    check_known(fields, {"causalConsistency", "snapshot", "defaultTransactionOptions", "defaultTimeoutMS"}, "a session")
    options = {snake_case(name): value for name, value in fields.items()}
    if "defaultTransactionOptions" in fields:
        options["default_transaction_options"] = _transaction_options(fields["defaultTransactionOptions"])
    session = client.start_session(**options)
    if run.cluster_time is not None:
        session.advance_cluster_time(run.cluster_time)
    return Entity("session", session, spec["client"])


def _transaction_options(fields: Mapping[str, Any]) -> TransactionOptions:
    rest = dict(fields)
    max_commit_time_ms = rest.pop("maxCommitTimeMS", None)
    return TransactionOptions(**common_options(rest), max_commit_time_ms=max_commit_time_ms)


def _create_bucket(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "database", "bucketOptions"}, "a bucket")
    database = run.entities.get("database", spec["database"])
    fields = dict(spec.get("bucketOptions", {}))
    bucket_fields = {name: fields.pop(name) for name in ("bucketName", "chunkSizeBytes") if name in fields}
    options = {snake_case(name): value for name, value in bucket_fields.items()}
    bucket = GridFSBucket(database, **options, **common_options(fields))
    return Entity("bucket", bucket, run.entities.find(spec["database"]).client_name)


def _create_client_encryption(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id", "clientEncryptionOpts"}, "a client encryption")
    options = spec["clientEncryptionOpts"]
    client = run.entities.client(options["keyVaultClient"]).client
    return Entity("clientEncryption", client_encryption(options, client), options["keyVaultClient"])


def _create_thread(run: Run, spec: Mapping[str, Any]) -> Entity:
    check_known(spec, {"id"}, "a thread")
    return Entity("thread", Thread())


_FACTORIES: dict[str, Callable[[Any, Mapping[str, Any]], Entity]] = {
    "client": _create_client,
    "clientEncryption": _create_client_encryption,
    "database": _create_database,
    "collection": _create_collection,
    "session": _create_session,
    "bucket": _create_bucket,
    "thread": _create_thread,
}

"""The data of a test: put there before it, and compared after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo import MongoClient, ReadPreference, WriteConcern
from gmongo.read_concern import ReadConcern
from tests.spec.unified.matching import Mismatch

_MAJORITY = WriteConcern("majority")


def prepare(client: MongoClient[Any], collections: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Make the collections of ``initialData`` anew; returns the cluster time after that, if there is one.

    :param client: the internal client.
    """
    with client.start_session() as session:
        for data in collections:
            _make(client, data, session)
        return session.cluster_time


def _make(client: MongoClient[Any], data: Mapping[str, Any], session: Any) -> None:
    database = client.get_database(data["databaseName"], write_concern=_MAJORITY)
    name, documents, options = data["collectionName"], data["documents"], data.get("createOptions")
    database.drop_collection(name, session=session)
    if options or not documents:
        database.create_collection(name, session=session, check_exists=False, **(options or {}))
    if documents:
        database[name].insert_many(documents, session=session)


def check_outcome(client: MongoClient[Any], collections: list[Mapping[str, Any]]) -> None:
    """Compare collections with ``outcome``.

    :raises Mismatch: one holds other documents.
    """
    for data in collections:
        collection = client[data["databaseName"]].get_collection(
            data["collectionName"], read_concern=ReadConcern("local"), read_preference=ReadPreference.PRIMARY
        )
        found = collection.find(sort=[("_id", 1)]).to_list()
        if found != data["documents"]:
            raise Mismatch(f"{collection.full_name} must hold {data['documents']}, but holds {found}")

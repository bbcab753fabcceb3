"""Insert the initial data of a case, and compare the data at the end of the case with ``outcome``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo import MongoClient, ReadPreference, WriteConcern
from gmongo.read_concern import ReadConcern
from tests.spec.unified.matching import Mismatch

_MAJORITY = WriteConcern("majority")


def insert_initial_data(client: MongoClient[Any], collections: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Drop and create the collections in ``initialData``, and insert their documents.

    Return the cluster time after the writes, or None if the server sends no cluster time.
    """
    with client.start_session() as session:
        for data in collections:
            _recreate_collection(client, data, session)
        return session.cluster_time


def _recreate_collection(client: MongoClient[Any], data: Mapping[str, Any], session: Any) -> None:
    database = client.get_database(data["databaseName"], write_concern=_MAJORITY)
    name, documents, options = data["collectionName"], data["documents"], data.get("createOptions")
    database.drop_collection(name, session=session)
    if options or not documents:
        database.create_collection(name, session=session, check_exists=False, **(options or {}))
    if documents:
        database[name].insert_many(documents, session=session)


def check_outcome(client: MongoClient[Any], collections: list[Mapping[str, Any]]) -> None:
    """Compare the documents of collections with ``outcome``."""
    for data in collections:
        collection = client[data["databaseName"]].get_collection(
            data["collectionName"],
            read_concern=ReadConcern("local"),
            read_preference=ReadPreference.PRIMARY,
        )
        documents = collection.find(sort=[("_id", 1)]).to_list()
        if documents != data["documents"]:
            raise Mismatch(f"{collection.full_name} must hold {data['documents']}, but holds {documents}")

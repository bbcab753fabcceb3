"""Use a simulated deployment with TLS and time zones, and use the embedded database."""

from __future__ import annotations

import datetime

import gmongo
from gmongo.testing import Deployment, EmbeddedDatabase

BERLIN = {"$dateToString": {"date": "$at", "timezone": "Europe/Berlin", "format": "%H"}}


def main() -> None:
    with Deployment.replica_set(tls=True) as deployment, gmongo.MongoClient(deployment.uri) as client:
        client.db.c.insert_one({"_id": 1, "at": datetime.datetime(2026, 7, 1, 12), "text": "gevent"})
        assert client.db.c.find_one({"text": {"$regex": "^ge"}}) is not None
        [found] = client.db.c.aggregate([{"$project": {"hour": BERLIN}}])
        assert found == {"_id": 1, "hour": "14"}
    with EmbeddedDatabase() as database, gmongo.MongoClient(database.uri) as client:
        client.db.c.insert_one({"_id": 1})
        assert client.db.c.find_one() == {"_id": 1}

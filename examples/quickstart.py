"""First steps with gmongo: ``python -m examples.quickstart``.

The program uses the database of MONGODB_URI, or an embedded database. The program does not
monkey-patch the standard library.
"""

from __future__ import annotations

import uuid
from typing import Any

from gevent.pool import Pool

from gmongo import ASCENDING, InsertOne, MongoClient, UpdateOne
from gmongo.collection import Collection
from gmongo.errors import DuplicateKeyError
from gmongo.testing import database_uri


def main() -> None:
    """Connect, and run the steps in a new collection."""
    client: MongoClient[dict[str, Any]]
    with database_uri() as uri, MongoClient(uri) as client:
        planets = client.gmongo_examples[f"planets_{uuid.uuid4().hex[:8]}"]
        try:
            write_and_read(planets)
            use_unique_index(planets)
            change_and_count(planets)
            share_client(planets)
            print(
                "connections that the pool opened:",
                sum(pool["total"] for pool in client.pool_stats()),
            )
        finally:
            planets.drop()


def write_and_read(planets: Collection[dict[str, Any]]) -> None:
    """Insert documents, and find the documents again."""
    print("insert_one:", planets.insert_one({"name": "Earth", "moons": 1, "rocky": True}).inserted_id)
    others = [("Venus", 0, True), ("Mars", 2, True), ("Jupiter", 95, False), ("Saturn", 146, False)]
    planets.insert_many([{"name": name, "moons": moons, "rocky": rocky} for name, moons, rocky in others])
    print("find_one:", planets.find_one({"name": "Mars"}, {"_id": 0}))
    rocky_planets = planets.find({"rocky": True}).sort("name", ASCENDING)
    print("find, sorted:", [planet["name"] for planet in rocky_planets])


def use_unique_index(planets: Collection[dict[str, Any]]) -> None:
    """Create a unique index, and insert a duplicate."""
    print("create_index:", planets.create_index([("name", ASCENDING)], unique=True))
    try:
        planets.insert_one({"name": "Earth"})
    except DuplicateKeyError as error:
        print("DuplicateKeyError: Earth exists already, code", error.code)


def change_and_count(planets: Collection[dict[str, Any]]) -> None:
    """Update a document, run a bulk write, and count the planets of each kind with an aggregation."""
    update_result = planets.update_one({"name": "Saturn"}, {"$set": {"rings": True}, "$inc": {"moons": 128}})
    print("update_one: matched", update_result.matched_count, "modified", update_result.modified_count)
    update = UpdateOne({"name": "Venus"}, {"$set": {"hot": True}})
    bulk_result = planets.bulk_write([InsertOne({"name": "Uranus", "moons": 28, "rocky": False}), update])
    print("bulk_write: inserted", bulk_result.inserted_count, "modified", bulk_result.modified_count)
    group = {"_id": "$rocky", "planets": {"$sum": 1}, "moons": {"$sum": "$moons"}}
    for kind in sorted(planets.aggregate([{"$group": group}]), key=lambda kind: not kind["_id"]):
        name = "rocky" if kind["_id"] else "giant"
        print(f"aggregate: {kind['planets']} {name} planets with {kind['moons']} moons")


def share_client(planets: Collection[dict[str, Any]]) -> None:
    """Share the client among greenlets: each operation checks out a connection from the pool."""
    Pool(20).map(lambda number: planets.insert_one({"name": f"asteroid {number}"}), range(100))
    print("100 inserts, 20 at a time: now", planets.count_documents({}), "documents")


if __name__ == "__main__":
    main()

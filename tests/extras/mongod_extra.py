"""A standalone of MongoDB's server from the wheel of the extra."""

from __future__ import annotations

import gmongo
from gmongo.testing import EmbeddedDatabase


def main() -> None:
    with EmbeddedDatabase(engine="mongod") as database, gmongo.MongoClient(database.uri) as client:
        client.db.c.insert_one({"_id": 1})
        assert client.db.c.find_one() == {"_id": 1}

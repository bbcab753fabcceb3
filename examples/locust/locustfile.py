"""Load test of a database. Locust monkey-patches the standard library. All users share one client and its pool.

python -m gmongo -m locust -f examples/locust/locustfile.py --headless -u 200 -r 50 -t 30s
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

from locust import User, constant_pacing, events, task
from pymongo import MongoClient

client: Any = MongoClient(os.environ.get("MONGODB_URI", "mongodb://localhost:27017"), maxPoolSize=50)
visits = client.locust_example.visits


@events.test_stop.add_listener
def clean_up(**_: Any) -> None:
    """Drop the database of the test."""
    client.drop_database("locust_example")


class Visitor(User):
    """User that counts visits to pages and reads the counts."""

    wait_time = constant_pacing(0.1)

    @task(1)
    def write(self) -> None:
        """Count a visit to one of a thousand pages."""
        page = random.randrange(1000)
        self._run_measured("update_one", lambda: visits.update_one({"_id": page}, {"$inc": {"count": 1}}, upsert=True))

    @task(4)
    def read(self) -> None:
        """Read the count of one page."""
        self._run_measured("find_one", lambda: visits.find_one({"_id": random.randrange(1000)}))

    @task(1)
    def read_popular_pages(self) -> None:
        """Read the counts of the ten pages with the most visits."""
        self._run_measured("find", lambda: visits.find().sort("count", -1).limit(10).to_list())

    def _run_measured(self, name: str, operation: Callable[[], Any]) -> None:
        """Run an operation, and report its duration and error to Locust."""
        began = time.perf_counter()
        error = None
        try:
            operation()
        except Exception as raised:
            error = raised
        milliseconds = (time.perf_counter() - began) * 1000
        self.environment.events.request.fire(
            request_type="mongodb", name=name, response_time=milliseconds, response_length=0, exception=error
        )

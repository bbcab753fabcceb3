"""Tasks that count words. MongoDB is Celery's broker, its result backend, and the database of the tasks.

python -m gmongo -m celery -A examples.celery.tasks worker -P gevent -c 100
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from pymongo import MongoClient, timeout
from pymongo.errors import PyMongoError

URI = os.environ.get("MONGO_URI", "mongodb://localhost:27017/celery_example")

app = Celery("examples", broker=URI, backend=URI)
app.conf.update(
    broker_connection_retry_on_startup=True,
    result_backend_thread_safe=True,  # all greenlets share one client of the result backend
    worker_enable_remote_control=False,  # with MongoDB as broker, remote control has no effect
)
texts: Any = MongoClient(URI).get_default_database().texts


@app.task
def count_words(name: str, text: str) -> int:
    """Count the words of a text, and store the count."""
    count = len(text.split())
    texts.update_one({"_id": name}, {"$set": {"words": count}}, upsert=True)
    stored = texts.find_one({"_id": name})
    return int(stored["words"])


@app.task
def longest(names: list[str]) -> str:
    """Return the name of the text with the most words."""
    if not names:
        raise ValueError("empty")
    return str(next(texts.find({"_id": {"$in": names}}).sort("words", -1).limit(1))["_id"])


@app.task(time_limit=30, autoretry_for=(PyMongoError,), max_retries=3)
def shortest(names: list[str]) -> str:
    """Return the name of the text with the fewest words.

    Celery's gevent pool implements `time_limit` by throwing a ``gevent.Timeout`` into the task at
    any switch. The time limit of the database operation is shorter, and the driver sends the shorter
    limit to the server. At this limit, the server aborts the operation, and sends an error reply.
    Therefore the connection stays usable, and Celery can retry the task.
    """
    with timeout(25):
        return str(next(texts.find({"_id": {"$in": names}}).sort("words", 1).limit(1))["_id"])


@app.task
def summary(counts: list[int]) -> dict[str, int]:
    """Return the number of texts, and the number of words in all texts."""
    return {"texts": len(counts), "words": sum(counts)}

"""A collection whose client is recorded, for tests that look at its commands."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gmongo import MongoClient
from gmongo.collection import Collection
from tests.support.recorder import Recorder


class Recorded(NamedTuple):
    """A collection, and what its client sends."""

    collection: Collection[Any]
    recorder: Recorder


@contextmanager
def recorded_collection(uri: str, **options: Any) -> Iterator[Recorded]:
    """A new collection, of a client whose commands are recorded from now on; it is gone afterwards.

    :param options: of the client.
    """
    recorder = Recorder()
    client: MongoClient[Any]
    with MongoClient(uri, event_listeners=[recorder], **options) as client:
        collection = client.gmongo_tests[f"r{uuid.uuid4().hex[:12]}"]
        yield Recorded(collection, recorder)
        collection.drop()

"""Collections whose client has a recorder of events."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gmongo import MongoClient
from gmongo.collection import Collection
from tests.support.recorder import Recorder


class Recording(NamedTuple):
    """A collection and the recorder of its client."""

    collection: Collection[Any]
    recorder: Recorder


@contextmanager
def recorded_collection(uri: str, **options: Any) -> Iterator[Recording]:
    """Yield a new collection and the recorder of the collection's client.

    Drop the collection at the end of the block.

    :param options: client options. The function adds the option ``event_listeners``.
    """
    recorder = Recorder()
    client: MongoClient[Any]
    with MongoClient(uri, event_listeners=[recorder], **options) as client:
        collection = client.gmongo_tests[f"r{uuid.uuid4().hex[:12]}"]
        yield Recording(collection, recorder)
        collection.drop()

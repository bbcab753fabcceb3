"""Collections whose client has a recorder of events."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gmongo import MongoClient
from gmongo.collection import Collection
from gmongo.errors import OperationFailure
from tests.support.recorder import Recorder


class Recorded(NamedTuple):
    """A collection and the recorder of its client."""

    collection: Collection[Any]
    recorder: Recorder


@contextmanager
def recorded_collection(uri: str, **options: Any) -> Iterator[Recorded]:
    """Yield a new collection and the recorder of the collection's client.

    Drop the collection at the end of the block.


    :param options: the options of the client, in addition to the recorder.
    """
    recorder = Recorder()
    client: MongoClient[Any]
    with MongoClient(uri, event_listeners=[recorder], **options) as client:
        collection = client.gmongo_tests[f"r{uuid.uuid4().hex[:12]}"]
        yield Recorded(collection, recorder)
        collection.drop()


@contextmanager
def ignore_error_before(collection: Collection[Any], version: str, code: int = 40415) -> Iterator[None]:
    """Run a block. Ignore the error of a server that is too old for the command in the block.

    :param version: the first server version that supports the fields of the command.
    :param code: the error code that an older server sends. 40415 is the code for an unknown field.
    """
    try:
        yield
    except OperationFailure as error:
        actual = collection.database.client.server_info()["version"]
        if error.code != code or [int(part) for part in actual.split(".")[:2]] >= [int(n) for n in version.split(".")]:
            raise

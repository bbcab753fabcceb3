"""A collection whose client is recorded, for tests that look at its commands."""

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


@contextmanager
def refused_before(collection: Collection[Any], version: str, code: int = 40415) -> Iterator[None]:
    """Run a block whose command an older server refuses. The command is recorded in both cases.

    :param version: the first version of the server that knows the fields of the command.
    :param code: the code of the error of an older server; by default the code for an unknown field.
    """
    try:
        yield
    except OperationFailure as error:
        found = collection.database.client.server_info()["version"]
        if error.code != code or [int(part) for part in found.split(".")[:2]] >= [int(n) for n in version.split(".")]:
            raise

"""One real server for a test session, or for all processes of a session of pytest-xdist."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gmongo.testing.embedded import URI_VARIABLE, EmbeddedDatabase
from gmongo.testing.embedded_replica_set import EmbeddedReplicaSet


class RunningServer(NamedTuple):
    """A server that runs for a test session.

    :param uri: the connection string.
    :param embedded: the embedded server; None if ``MONGODB_URI`` names the server or another process started it.
    """

    uri: str
    embedded: EmbeddedDatabase | EmbeddedReplicaSet | None


@contextmanager
def new_server(members: int) -> Iterator[RunningServer]:
    """Use the server of ``MONGODB_URI``, or start one that ends with the block.

    :param members: the number of members of a replica set; 0 for a standalone.
    """
    given = os.environ.get(URI_VARIABLE)
    if given:
        yield RunningServer(given, None)
        return
    with EmbeddedReplicaSet(members) if members else EmbeddedDatabase(engine="mongod") as embedded:
        yield RunningServer(embedded.uri, embedded)


@contextmanager
def shared(folder: Path, members: int) -> Iterator[RunningServer]:
    """Use the server of the first process that enters the block. The first process leaves the block last.

    :param folder: a folder that all processes of the session know.
    :param members: the number of members of a replica set; 0 for a standalone.
    """
    address = folder / "mongodb_uri"
    with (folder / "mongodb_start").open("a") as start, (folder / "mongodb_users").open("a") as users:
        fcntl.flock(start, fcntl.LOCK_EX)
        if address.exists():
            fcntl.flock(users, fcntl.LOCK_SH)
            fcntl.flock(start, fcntl.LOCK_UN)
            yield RunningServer(address.read_text(), None)
            return  # the locks end with the files
        with new_server(members) as server:
            address.write_text(server.uri)
            fcntl.flock(start, fcntl.LOCK_UN)
            try:
                yield server
            finally:
                _await_others(start, users)
                address.unlink()


def _await_others(start: Any, users: Any) -> None:
    # A process that starts now waits for `start`, and starts another server.
    fcntl.flock(start, fcntl.LOCK_EX)
    fcntl.flock(users, fcntl.LOCK_EX)

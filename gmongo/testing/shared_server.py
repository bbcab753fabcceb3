"""Start one real server for a test session. All processes of a pytest-xdist session can share the server."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from gmongo.testing.embedded import URI_VARIABLE, EmbeddedDatabase
from gmongo.testing.embedded_replica_set import EmbeddedReplicaSet


class RunningServer(NamedTuple):
    """A server that runs for a test session, with its connection string."""

    uri: str
    embedded: EmbeddedDatabase | EmbeddedReplicaSet | None  # None if this process did not start the server


@contextmanager
def start_server(members: int) -> Iterator[RunningServer]:
    """Yield the server of ``MONGODB_URI``, or start a server if the environment variable is not set.

    :param members: the number of members of a new replica set; 0 means a standalone.
    """
    configured_uri = os.environ.get(URI_VARIABLE)
    if configured_uri:
        yield RunningServer(configured_uri, None)
        return
    with EmbeddedReplicaSet(members) if members else EmbeddedDatabase(engine="mongod") as embedded:
        yield RunningServer(embedded.uri, embedded)


@contextmanager
def share_server(folder: Path, members: int) -> Iterator[RunningServer]:
    """Yield the server that the first process of the session started. All processes share `folder`.

    The first process leaves its ``with`` block, and ends the server, after all other processes have left their blocks.
    """
    address = folder / "mongodb_uri"
    with (folder / "mongodb_start").open("a") as start, (folder / "mongodb_users").open("a") as users:
        fcntl.flock(start, fcntl.LOCK_EX)
        if address.exists():
            fcntl.flock(users, fcntl.LOCK_SH)
            fcntl.flock(start, fcntl.LOCK_UN)
            yield RunningServer(address.read_text(), None)
            return  # the end of the outer ``with`` block closes the files, and thereby releases the locks
        with start_server(members) as server:
            address.write_text(server.uri)
            fcntl.flock(start, fcntl.LOCK_UN)
            try:
                yield server
            finally:
                # If another process calls `share_server` now, the process waits for the lock of `start`. After this
                # process has removed the file with the URI, the other process starts a new server.
                fcntl.flock(start, fcntl.LOCK_EX)
                fcntl.flock(users, fcntl.LOCK_EX)
                address.unlink()

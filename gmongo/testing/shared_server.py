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
def start_server(member_count: int) -> Iterator[RunningServer]:
    """Yield the server of ``MONGODB_URI``. If this variable is not set, start and yield a server.

    :param member_count: the number of members of a new replica set; 0 means a standalone.
    """
    configured_uri = os.environ.get(URI_VARIABLE)
    if configured_uri:
        yield RunningServer(configured_uri, None)
        return
    with EmbeddedReplicaSet(member_count) if member_count else EmbeddedDatabase(engine="mongod") as embedded:
        yield RunningServer(embedded.uri, embedded)


@contextmanager
def share_server(folder: Path, member_count: int) -> Iterator[RunningServer]:
    """Yield the server of the session, which the first process starts.

    At the end of its ``with`` block, the first process waits until the other processes have left
    their blocks, and then ends the server. All processes pass the same `folder`.
    """
    uri_file = folder / "mongodb_uri"
    with (folder / "mongodb_start").open("a") as start_lock, (folder / "mongodb_users").open("a") as usage_lock:
        fcntl.flock(start_lock, fcntl.LOCK_EX)
        if uri_file.exists():
            fcntl.flock(usage_lock, fcntl.LOCK_SH)
            fcntl.flock(start_lock, fcntl.LOCK_UN)
            yield RunningServer(uri_file.read_text(), None)
            return  # the end of the outer ``with`` block closes the files, and releases the locks
        with start_server(member_count) as server:
            uri_file.write_text(server.uri)
            fcntl.flock(start_lock, fcntl.LOCK_UN)
            try:
                yield server
            finally:
                # If another process calls `share_server` now, that process waits for `start_lock`.
                # After this process has removed the file with the URI, the other process starts a new
                # server.
                fcntl.flock(start_lock, fcntl.LOCK_EX)
                fcntl.flock(usage_lock, fcntl.LOCK_EX)
                uri_file.unlink()

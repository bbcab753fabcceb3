"""Show the states of the processes of an application in a terminal."""

from __future__ import annotations

import sys
import tempfile

from gevent import subprocess

import gmongo
from gmongo.status import publish
from tests.support.server import ScriptedServer


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedServer() as server,
        gmongo.MongoClient("127.0.0.1", server.port) as client,
    ):
        client.db.command("ping")
        publish(folder)
        shown = subprocess.check_output([sys.executable, "-m", "gmongo.status", folder, "--once"], text=True)
        assert str(server.port) in shown, shown

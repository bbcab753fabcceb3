"""Import each public module and run operations with gmongo without extras."""

from __future__ import annotations

import importlib
import pkgutil

import gmongo
from tests.support.server import ScriptedServer

# Modules that cannot be imported without an extra.
NEED_EXTRA = {
    "gmongo.status.screen", "gmongo.status.terminal", "gmongo.testing", "gmongo.wire.ocsp",
    "gmongo.wire.openssl", "gmongo._telemetry.tracing", "gmongo._telemetry.metrics",
    "gmongo._encryption",
}  # fmt: skip


def main() -> None:
    for found in pkgutil.walk_packages(gmongo.__path__, "gmongo.", onerror=lambda _name: None):
        parts = found.name.split(".")
        parents = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        if not parents & NEED_EXTRA and parts[-1] != "__main__":
            importlib.import_module(found.name)
    with (
        ScriptedServer() as server,
        gmongo.MongoClient("127.0.0.1", server.port, compressors="zlib", tls=False) as client,
    ):
        assert client.db.c.find_one({"_id": 5}) == {"_id": 5}

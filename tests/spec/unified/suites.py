"""The suites in the unified test format: where their files are, and what is special about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bson.json_util import JSONOptions, loads

from tests.spec.specifications import root

# The final policy of Client Backpressure, which the files take for granted; gmongo's default is the earlier one. And
# it need not wait as long between its attempts as it would for a real server.
CLIENT_OPTIONS: Mapping[str, Any] = {"maxAdaptiveRetries": 2, "baseBackoffMS": 5}
"""What all clients have unless they say otherwise."""

_EXTENDED_JSON = JSONOptions(tz_aware=False)


@dataclass(frozen=True)
class Suite:
    """A folder of test files.

    :param name: short, for the tests' IDs.
    :param folder: below the specifications.
    """

    name: str
    folder: str


SUITES = (
    Suite("unified-test-format", "unified-test-format/tests/valid-pass"),
    Suite("auth", "auth/tests/unified"),
    Suite("causal-consistency", "causal-consistency/tests"),
    Suite("change-streams", "change-streams/tests/unified"),
    Suite("client-backpressure", "client-backpressure/tests"),
    Suite("client-side-encryption", "client-side-encryption/tests/unified"),
    Suite("csot", "client-side-operations-timeout/tests"),
    Suite("cmap-logging", "connection-monitoring-and-pooling/tests/logging"),
    Suite("collection-management", "collection-management/tests"),
    Suite("command-logging", "command-logging-and-monitoring/tests/logging"),
    Suite("command-monitoring", "command-logging-and-monitoring/tests/monitoring"),
    Suite("crud", "crud/tests/unified"),
    Suite("gridfs", "gridfs/tests"),
    Suite("index-management", "index-management/tests"),
    Suite("load-balancers", "load-balancers/tests"),
    Suite("mongodb-handshake", "mongodb-handshake/tests/unified"),
    Suite("open-telemetry", "open-telemetry/tests/operation"),
    Suite("open-telemetry-transaction", "open-telemetry/tests/transaction"),
    Suite("read-write-concern", "read-write-concern/tests/operation"),
    Suite("retryable-reads", "retryable-reads/tests/unified"),
    Suite("retryable-writes", "retryable-writes/tests/unified"),
    Suite("run-command", "run-command/tests/unified"),
    Suite("sdam", "server-discovery-and-monitoring/tests/unified"),
    Suite("server-selection-logging", "server-selection/tests/logging"),
    Suite("sessions", "sessions/tests"),
    Suite("transactions", "transactions/tests/unified"),
    Suite("transactions-convenient-api", "transactions-convenient-api/tests/unified"),
    Suite("versioned-api", "versioned-api/tests"),
)

VALID_FAIL = Suite("valid-fail", "unified-test-format/tests/valid-fail")
INVALID = Suite("invalid", "unified-test-format/tests/invalid")


@dataclass(frozen=True, eq=False)
class File:
    """A test file.

    :param suite: it belongs to.
    :param path: of the file.
    :param document: its content, as plain JSON.
    """

    suite: Suite
    path: Path
    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Suite and name."""
        return f"{self.suite.name}/{self.path.stem}"

    def read(self) -> dict[str, Any]:
        """Its content anew, as BSON values."""
        return loads(self.path.read_text("utf-8"), json_options=_EXTENDED_JSON)


def files(suite: Suite) -> Iterator[File]:
    """The files of a suite; none if the specifications are not here."""
    folder = root()
    if folder is None:
        return
    for path in sorted((folder / suite.folder).glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        if suite in (VALID_FAIL, INVALID) or "schemaVersion" in document:
            yield File(suite, path, document)

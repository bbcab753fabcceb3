"""The official JSON tests of the MongoDB driver specifications: where they are, and what kind of test a file holds.

A file is known by what is in it, wherever it lies: a new one is run, and one of an unknown kind fails a test. Only the
files of the unified test format that must be refused, or must fail, are told by the name of their folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HOW_TO_GET_THEM = (
    "the official tests are not here: clone https://github.com/mongodb/specifications and set"
    " GMONGO_SPEC_TESTS to its folder 'source'"
)

CONTRADICTED: dict[tuple[str, str], str] = {
    (
        "connection-string",
        "should throw an exception if username and password provided (MONGODB-AWS)",
    ): "the cases contradict each other; AWS credentials in a URI are accepted, as PyMongo 4 does",
    (
        "single-threaded-options",
        "Valid options specific to single-threaded drivers are parsed correctly",
    ): "serverSelectionTryOnce: the Server Selection specification forbids it to drivers with many threads",
}
"""(file, case) -> why gmongo does otherwise. These cases are run, and must fail."""

DATA = (
    *("corpus.json", "corpus-encrypted.json", "corpus-key-*.json", "corpus-schema.json"),
    *("limits-*.json", "external-*.json", "*encryptedFields*.json", "key*-document.json", "key*-id.json"),
    *("key-doc.json", "schema-*csfle*.json", "schema-qe*.json", "schema-[0-9l]*.json", "schemaVersion-required.json"),
)
"""The names of files that are no tests, but what tests need. The last is a test of the format without its mark."""

_BESIDE = Path(__file__).parents[3] / "shared"


@dataclass(frozen=True, eq=False)
class File:
    """An official file.

    :param path: of the file.
    :param folder: the first one below the specifications.
    :param document: its content, as plain JSON.
    """

    path: Path
    folder: str
    document: Any

    @property
    def id(self) -> str:
        """Specification and name."""
        return f"{self.folder}/{self.path.stem}"

    @property
    def kind(self) -> str | None:
        """The one of :data:`KINDS` that it is of; None if it is of none."""
        return _kind_of(self.document) if isinstance(self.document, dict) else None


def _kind_of(document: Mapping[str, Any]) -> str | None:
    tests = document.get("tests")
    first = tests[0] if isinstance(tests, list) and tests and isinstance(tests[0], dict) else {}
    return next((name for name, matches in KINDS.items() if matches(document, first)), None)


def _has(*fields: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], bool]:
    return lambda document, case: set(fields) <= document.keys()


def _cases_have(*fields: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], bool]:
    return lambda document, case: set(fields) <= case.keys()


def _publishes(document: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    return "phases" in document and all("events" in phase["outcome"] for phase in document["phases"])


def _writes_concern(document: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    tests = document["tests"] if case else ()
    return "uri" in case and any("readConcern" in each or "writeConcern" in each for each in tests)


KINDS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool]] = {
    "unified": _has("schemaVersion"),
    "sdam monitoring": _publishes,
    "sdam": _has("uri", "phases"),
    "credential": _cases_have("uri", "credential"),
    "read concern": _cases_have("readConcernDocument"),
    "write concern": _cases_have("writeConcernDocument"),
    "concerns in a uri": _writes_concern,
    "uri": _cases_have("uri", "hosts", "options"),
    "window": _has("topology_description", "mocked_topology_state"),
    "selection": _has("topology_description"),
    "round trip time": _has("avg_rtt_ms"),
    "pool": _has("version", "style"),
    "seedlist": _has("uri"),
}
"""What tells the kinds of files apart, from a file's content and its first case. The first that fits is taken."""


def root() -> Path | None:
    """The folder with one folder per specification, or None if the tests are not on this machine."""
    given = os.environ.get("GMONGO_SPEC_TESTS")
    folders = [Path(given)] if given else [_BESIDE / "specifications-full", _BESIDE / "specifications"]
    return next((folder for folder in folders if folder.is_dir()), None)


@cache
def everything() -> tuple[File, ...]:
    """All files, by their names."""
    folder = root()
    if folder is None:
        return ()
    paths = sorted(folder.rglob("*.json"))
    return tuple(File(path, path.relative_to(folder).parts[0], json.loads(path.read_text("utf-8"))) for path in paths)


@cache
def of_kind(kind: str) -> tuple[File, ...]:
    """All files of a kind."""
    assert kind in KINDS
    return tuple(file for file in everything() if file.kind == kind)


def path_of(name: str) -> Path:
    """Where the file with this name is, of which there is one only.

    Skips the test if the specifications are not here.
    """
    if root() is None:
        pytest.skip(HOW_TO_GET_THEM)
    (path,) = (file.path for file in everything() if file.path.name == name)
    return path


def cases(kind: str) -> list[Any]:
    """Every case of the files of a kind, as arguments for :func:`pytest.mark.parametrize`."""
    found = [_parameter(file, case["description"], case) for file in of_kind(kind) for case in file.document["tests"]]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=HOW_TO_GET_THEM))]


def files(kind: str, part: str = "") -> list[Any]:
    """Every file of a kind as one argument for :func:`pytest.mark.parametrize`.

    :param part: the name of the part of the files that is tested, if they are tested in parts.
    """
    found = [_parameter(file, part, file.document) for file in of_kind(kind)]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=HOW_TO_GET_THEM))]


def _parameter(file: File, case: str, value: Any) -> Any:
    reason = CONTRADICTED.get((file.path.stem, case))
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    inner = "/".join(file.path.parts[-2:]).removesuffix(".json")
    return pytest.param(value, id=f"{file.folder}/{inner}: {case}" if case else f"{file.folder}/{inner}", marks=marks)

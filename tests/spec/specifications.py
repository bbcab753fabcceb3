"""Find the files of the official JSON tests of the MongoDB driver specifications, and the kind of each
file.

The content of a file determines its kind, and the kind determines the runner. If a specification
adds a file of a known kind, the runner of the kind also runs the new file. If a file has an unknown
kind, a test fails. Unified tests in the folders ``invalid`` and ``valid-fail`` have separate
runners, because these tests must fail.
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

HOW_TO_GET_TESTS = (
    "the official tests are missing: clone https://github.com/mongodb/specifications and set"
    " GMONGO_SPEC_TESTS to the folder 'source' of the clone"
)

CONTRADICTED_CASES: dict[tuple[str, str], str] = {
    (
        "connection-string",
        "should throw an exception if username and password provided (MONGODB-AWS)",
    ): "official cases contradict each other; gmongo accepts AWS credentials in a URI, as PyMongo 4 does",
    (
        "single-threaded-options",
        "Valid options specific to single-threaded drivers are parsed correctly",
    ): "serverSelectionTryOnce: the Server Selection specification forbids it for multi-threaded drivers",
}
"""(file, case) of each official case that must fail with gmongo -> the reason of the failure."""

DATA_GLOBS = (
    "corpus.json",
    "corpus-encrypted.json",
    "corpus-key-*.json",
    "corpus-schema.json",
    "limits-*.json",
    "external-*.json",
    "*encryptedFields*.json",
    "key*-document.json",
    "key*-id.json",
    "key-doc.json",
    "schema-*csfle*.json",
    "schema-qe*.json",
    "schema-[0-9l]*.json",
    "schemaVersion-required.json",
)
"""Patterns for the names of files whose content no runner uses.

The last pattern matches an invalid unified test: the field ``schemaVersion`` is missing.
"""

_CLONE_ROOT = Path(__file__).parents[3] / "shared"


@dataclass(frozen=True, eq=False)
class SpecFile:
    """A file of the official tests."""

    path: Path
    folder: str
    document: Any

    @property
    def id(self) -> str:
        """The folder of the specification, a slash, and the file name without its extension."""
        return f"{self.folder}/{self.path.stem}"

    @property
    def kind(self) -> str | None:
        """The kind of the file: the first key of :data:`KINDS` whose predicate is true, or None."""
        return _kind_of(self.document) if isinstance(self.document, dict) else None


def _kind_of(document: Mapping[str, Any]) -> str | None:
    tests = document.get("tests")
    first_case = tests[0] if isinstance(tests, list) and tests and isinstance(tests[0], dict) else {}
    return next((name for name, matches in KINDS.items() if matches(document, first_case)), None)


def _document_has(*fields: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], bool]:
    return lambda document, case: set(fields) <= document.keys()


def _first_case_has(*fields: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], bool]:
    return lambda document, case: set(fields) <= case.keys()


def _expects_sdam_events(document: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    return "phases" in document and all("events" in phase["outcome"] for phase in document["phases"])


def _has_concern_in_uri(document: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    tests = document["tests"] if case else ()
    return "uri" in case and any("readConcern" in each or "writeConcern" in each for each in tests)


KINDS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool]] = {
    "unified": _document_has("schemaVersion"),
    "sdam monitoring": _expects_sdam_events,
    "sdam": _document_has("uri", "phases"),
    "credential": _first_case_has("uri", "credential"),
    "read concern": _first_case_has("readConcernDocument"),
    "write concern": _first_case_has("writeConcernDocument"),
    "concerns in a uri": _has_concern_in_uri,
    "uri": _first_case_has("uri", "hosts", "options"),
    "window": _document_has("topology_description", "mocked_topology_state"),
    "selection": _document_has("topology_description"),
    "round trip time": _document_has("avg_rtt_ms"),
    "pool": _document_has("version", "style"),
    "seedlist": _document_has("uri"),
}
"""Kind of file -> predicate of the content and the first case. The kind of a file is the first kind
whose predicate is true.
"""


def specifications_folder() -> Path | None:
    """Return the folder of the official tests, or None if the tests are missing.

    The folder contains one folder for each specification.
    """
    variable = os.environ.get("GMONGO_SPEC_TESTS")
    folders = [Path(variable)] if variable else [_CLONE_ROOT / "specifications-full", _CLONE_ROOT / "specifications"]
    return next((folder for folder in folders if folder.is_dir()), None)


@cache
def all_files() -> tuple[SpecFile, ...]:
    """Return all files of the official tests, sorted by path."""
    folder = specifications_folder()
    if folder is None:
        return ()
    paths = sorted(folder.rglob("*.json"))
    return tuple(
        SpecFile(path, path.relative_to(folder).parts[0], json.loads(path.read_text("utf-8"))) for path in paths
    )


@cache
def files_of_kind(kind: str) -> tuple[SpecFile, ...]:
    assert kind in KINDS
    return tuple(file for file in all_files() if file.kind == kind)


def path_of(name: str) -> Path:
    """Return the path of the only file with the given name.

    Skip the current test if the official tests do not exist.
    """
    if specifications_folder() is None:
        pytest.skip(HOW_TO_GET_TESTS)
    (path,) = (file.path for file in all_files() if file.path.name == name)
    return path


def cases(kind: str) -> list[Any]:
    """Return all cases in the files of a kind, as parameters for :func:`pytest.mark.parametrize`."""
    parameters = [
        _parameter(file, case["description"], case) for file in files_of_kind(kind) for case in file.document["tests"]
    ]
    return parameters or [pytest.param(None, marks=pytest.mark.skip(reason=HOW_TO_GET_TESTS))]


def files(kind: str, id_suffix: str = "") -> list[Any]:
    """Return all files of a kind, as parameters for :func:`pytest.mark.parametrize`."""
    parameters = [_parameter(file, id_suffix, file.document) for file in files_of_kind(kind)]
    return parameters or [pytest.param(None, marks=pytest.mark.skip(reason=HOW_TO_GET_TESTS))]


def _parameter(file: SpecFile, case_name: str, value: Any) -> Any:
    reason = CONTRADICTED_CASES.get((file.path.stem, case_name))
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    label = "/".join(file.path.parts[-2:]).removesuffix(".json")
    test_id = f"{file.folder}/{label}: {case_name}" if case_name else f"{file.folder}/{label}"
    return pytest.param(value, id=test_id, marks=marks)

"""The official JSON tests of the MongoDB driver specifications: where they are, and which are skipped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

HOW_TO_GET_THEM = (
    "the official tests are not here: clone https://github.com/mongodb/specifications and set"
    " GMONGO_SPEC_TESTS to its folder 'source'"
)

SKIPS: dict[tuple[str, str], str] = {
    (
        "auth/tests/legacy/connection-string",
        "should throw an exception if username and password provided (MONGODB-AWS)",
    ): "the cases contradict each other; AWS credentials in a URI are accepted, as PyMongo 4 does",
    (
        "uri-options/tests/single-threaded-options",
        "Valid options specific to single-threaded drivers are parsed correctly",
    ): ("serverSelectionTryOnce: the Server Selection specification forbids it to drivers with many threads"),
}
"""(suite, case) -> why gmongo does not run it. A suite is the path of a file without its suffix."""


def root() -> Path | None:
    """The folder with one folder per specification, or None if the tests are not on this machine."""
    given = os.environ.get("GMONGO_SPEC_TESTS")
    folder = Path(given) if given else Path(__file__).parents[3] / "shared" / "specifications"
    return folder if folder.is_dir() else None


def documents(folder: str, pattern: str = "*.json") -> list[tuple[str, dict[str, Any]]]:
    """The files of a folder, such as ``"uri-options/tests"``, as pairs of suite and content."""
    specifications = root()
    if specifications is None:
        return []
    files = sorted((specifications / folder).glob(pattern))
    return [(_suite(file, specifications), json.loads(file.read_text("utf-8"))) for file in files]


def cases(folder: str, pattern: str = "*.json", key: str = "tests") -> list[Any]:
    """Every case of the files of a folder, as arguments for :func:`pytest.mark.parametrize`.

    :param folder: such as ``"uri-options/tests"``.
    :param pattern: which files of it.
    :param key: the list of cases in a file.
    """
    found = [
        parameter(suite, case["description"], case)
        for suite, document in documents(folder, pattern)
        for case in document[key]
    ]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=HOW_TO_GET_THEM))]


def files(folder: str, pattern: str = "*.json", part: str = "") -> list[Any]:
    """Every file of a folder as one argument for :func:`pytest.mark.parametrize`.

    :param part: the name of the part of the files that is tested, if they are tested in parts.
    """
    found = [parameter(suite, part, document) for suite, document in documents(folder, pattern)]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=HOW_TO_GET_THEM))]


def parameter(suite: str, case: str, value: Any) -> Any:
    """One argument for :func:`pytest.mark.parametrize`, marked if :data:`SKIPS` names it."""
    reason = SKIPS.get((suite, case))
    marks = [pytest.mark.skip(reason=reason)] if reason else []
    return pytest.param(value, id=f"{suite}: {case}" if case else suite, marks=marks)


def _suite(file: Path, specifications: Path) -> str:
    return file.relative_to(specifications).with_suffix("").as_posix()

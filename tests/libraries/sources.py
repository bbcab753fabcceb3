"""Where libraries' own tests come from: the source distributions of the versions that are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

FOLDER_VARIABLE = "GMONGO_LIBRARIES"
"""Names a folder for source distributions. Where it is set, as by ``tox -e libraries``, no library may be missing."""


def all_must_be_there() -> bool:
    """Whether a library that is not installed is a failure."""
    return FOLDER_VARIABLE in os.environ


def require(*distributions: str) -> None:
    """Skip the test if one of these is not installed, or let it fail if all must be."""
    for distribution in distributions:
        try:
            version(distribution)
        except PackageNotFoundError:
            missing = f"{distribution} is not installed"
            if all_must_be_there():
                pytest.fail(missing)
            pytest.skip(f"{missing}; tox -e libraries installs all")


def source_of(distribution: str) -> Path:
    """The folder of a distribution's source, which is downloaded with pip when it is asked for first."""
    folder = Path(os.environ[FOLDER_VARIABLE]) / distribution
    if not folder.exists():
        download = folder.with_suffix(".download")
        requirement = f"{distribution}=={version(distribution)}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", requirement]
        subprocess.run([*command, "--dest", str(download)], check=True)
        with tarfile.open(next(download.glob("*.tar.gz"))) as archive:
            archive.extractall(download, filter="data")
        download.rename(folder)
    return next(each for each in folder.iterdir() if each.is_dir())

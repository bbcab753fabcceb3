"""Locate the tests of the installed libraries in their source distributions."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

FOLDER_VARIABLE = "GMONGO_LIBRARIES"
"""Environment variable: folder of source distributions. If set, tests of missing libraries fail."""


def libraries_are_required() -> bool:
    """Return True if the tests of a missing library fail, and False if the tests are skipped."""
    return FOLDER_VARIABLE in os.environ


def require_distributions(*distributions: str) -> None:
    """If one of the `distributions` is not installed, skip or fail the current test."""
    for distribution in distributions:
        try:
            version(distribution)
        except PackageNotFoundError:
            message = f"{distribution} is not installed"
            if libraries_are_required():
                pytest.fail(message)
            pytest.skip(f"{message}; tox -e libraries installs all")


def unpack_source(distribution: str) -> Path:
    """Return the folder with the unpacked source of a distribution.

    If the folder does not exist, download and unpack the source distribution.
    """
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

"""Download PyMongo's tests in the installed version, and create a renamed copy of the installed
PyMongo.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

PREFIX = "real"
"""Prefix of the packages in the renamed copy of PyMongo."""

_PACKAGES = ("pymongo", "gridfs")
_PACKAGE = r"(?=(?:pymongo|gridfs)\b(?!\.errors))"
# Pattern for the position before a package name in code, but not in strings. The name
# `pymongo.errors` is not renamed, so that functions of the copy raise the errors of the stand-in.
_NAME_PATTERN = re.compile(rf"""(?<=from ){_PACKAGE}|(?<=import ){_PACKAGE}|(?<![\w."'`]){_PACKAGE}(?=\w+\.\w)""")


def download_tests(folder: Path) -> Path:
    """Return the folder with PyMongo's package ``test``. Download the source distribution if the
    folder is missing.

    :param folder: Folder for downloads and unpacked tests.
    """
    installed_version = version("pymongo")
    target = folder / f"pymongo-{installed_version}-tests"
    if not target.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pymongo"]
        subprocess.run([*command, "--dest", str(folder), f"pymongo=={installed_version}"], check=True)
        _unpack(folder / f"pymongo-{installed_version}.tar.gz", target)
    return target


def _unpack(archive: Path, target: Path) -> None:
    """Extract only the tests from the source distribution.

    If the folder also contained PyMongo, Python would import this PyMongo, which has no C extensions.
    """
    partial_folder = target.with_suffix(".partial")
    with tarfile.open(archive) as source:
        members = [each for each in source.getmembers() if Path(each.name).parts[1:2] == ("test",)]
        source.extractall(partial_folder, members, filter="data")
    (partial_folder / archive.name.removesuffix(".tar.gz")).rename(target)
    partial_folder.rmdir()


def create_renamed_copy(folder: Path) -> Path:
    """Return the folder with a renamed copy of the installed PyMongo. Create the copy if the folder
    is missing.

    :param folder: Folder for the copy.
    """
    target = folder / f"renamed-{version('pymongo')}"
    for package in _PACKAGES if not target.exists() else ():
        spec = find_spec(package)
        assert spec is not None and spec.origin is not None
        source = Path(spec.origin).parent
        copy = target / (PREFIX + package)
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
        for path in copy.rglob("*.py"):
            path.write_text(_NAME_PATTERN.sub(PREFIX, path.read_text("utf-8")), "utf-8")
    return target

"""PyMongo's tests, from the source distribution of the installed version, and its modules under another name."""

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
"""With it before their names, PyMongo's packages are there beside the stand-in."""

_PACKAGES = ("pymongo", "gridfs")
_PACKAGE = r"(?=(?:pymongo|gridfs)\b(?!\.errors))"
# In an import, or where a name is used that the import of a submodule has bound; not in a string. The errors stay
# those of the stand-in, so that PyMongo's functions raise what the tests expect.
_NAME = re.compile(rf"""(?<=from ){_PACKAGE}|(?<=import ){_PACKAGE}|(?<![\w."'`]){_PACKAGE}(?=\w+\.\w)""")


def tests(folder: Path) -> Path:
    """The folder with the package ``test``, which is downloaded with pip when it is asked for first.

    :param folder: for what is downloaded.
    """
    installed = version("pymongo")
    target = folder / f"pymongo-{installed}-tests"
    if not target.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pymongo"]
        subprocess.run([*command, "--dest", str(folder), f"pymongo=={installed}"], check=True)
        _unpack(folder / f"pymongo-{installed}.tar.gz", target)
    return target


def _unpack(archive: Path, target: Path) -> None:
    """Take the tests alone: with its packages beside them, PyMongo would be imported from there, without its C code."""
    partial = target.with_suffix(".partial")
    with tarfile.open(archive) as source:
        members = [each for each in source.getmembers() if Path(each.name).parts[1:2] == ("test",)]
        source.extractall(partial, members, filter="data")
    (partial / archive.name.removesuffix(".tar.gz")).rename(target)
    partial.rmdir()


def renamed_copy(folder: Path) -> Path:
    """The folder with a copy of the installed PyMongo whose packages have other names.

    :param folder: for the copy.
    """
    target = folder / f"renamed-{version('pymongo')}"
    for package in _PACKAGES if not target.exists() else ():
        spec = find_spec(package)
        assert spec is not None and spec.origin is not None
        source = Path(spec.origin).parent
        copy = target / (PREFIX + package)
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
        for path in copy.rglob("*.py"):
            path.write_text(_NAME.sub(PREFIX, path.read_text("utf-8")), "utf-8")
    return target

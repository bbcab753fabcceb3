"""gmongo stands on PyMongo's `bson` package only."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import gmongo

# A program to be run, not to be imported; and the module that stands in for pymongo from its import on.
NOT_HERE = ("gmongo.testing.__main__", "gmongo.as_pymongo")
MODULES = sorted(
    found.name for found in pkgutil.walk_packages(gmongo.__path__, "gmongo.") if not found.name.startswith(NOT_HERE)
)


def imported_by(*modules):
    program = f"""
import importlib, sys
for module in {list(modules)!r}:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:  # an extra that is not installed
        assert error.name.partition(".")[0] not in ("gmongo", "pymongo", "gridfs"), error
print(sorted(name for name in sys.modules if name.split(".")[0] in ("pymongo", "gridfs")))
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_no_module_imports_pymongo():
    assert len(MODULES) > 50
    assert imported_by(*MODULES) == "[]"


def test_the_package_alone_imports_no_test_server():
    program = "import sys, gmongo; print('gmongo.testing' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert found == "False"


def test_importing_does_not_monkey_patch():
    program = "import gmongo, socket, time; from gevent import monkey; print(monkey.is_module_patched('socket'))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert found == "False"

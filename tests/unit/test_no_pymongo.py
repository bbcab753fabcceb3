"""gmongo imports only `bson` from the PyMongo distribution, and never the `pymongo` package."""

from __future__ import annotations

import pkgutil

import pytest

import gmongo
from tests.support.programs import run_program

# Modules that the test does not import: a program, and the module that replaces pymongo.
EXCLUDED = ("gmongo.testing.__main__", "gmongo.as_pymongo")
MODULES = sorted(
    info.name for info in pkgutil.walk_packages(gmongo.__path__, "gmongo.") if not info.name.startswith(EXCLUDED)
)


def pymongo_modules_imported_by(*modules):
    program = f"""
import importlib, sys
for module in {list(modules)!r}:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:  # an extra that is not installed
        assert error.name.partition(".")[0] not in ("gmongo", "pymongo", "gridfs"), error
print(sorted(name for name in sys.modules if name.split(".")[0] in ("pymongo", "gridfs")))
"""
    return run_program(program).strip()


def test_no_module_imports_pymongo():
    assert len(MODULES) > 50
    assert pymongo_modules_imported_by(*MODULES) == "[]"


@pytest.mark.parametrize(
    "import_statement",
    ["'gmongo.testing' in sys.modules", "gevent.monkey.is_module_patched('socket')"],
)
def test_import_of_gmongo_imports_no_test_server_and_patches_no_module(import_statement):
    program = f"import gmongo, socket, sys, time; import gevent.monkey; print({import_statement})"
    assert run_program(program) == "False\n"

"""Tests of ``sys.path`` in a program that ``python -m gmongo`` runs."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pytest

from gmongo._version import __version__
from tests.support.programs import TIMEOUT

pytestmark = pytest.mark.long

PRINT_PATH_PROGRAM = "import sys; print(sys.path); print(sys.argv)\n"
PROGRAMS = {
    "current directory": ("prog.py",),
    "other directory": ("../app/prog.py",),
    "absolute path": ("{root}/app/prog.py",),
    "linked file": ("link.py",),
    "linked directory": ("../linked/prog.py",),
    "directory": ("../app",),
    "zip file": ("../app.zip",),
    "module": ("-m", "prog"),
    "package": ("-m", "pack"),
    "module in package": ("-m", "pack.inner"),
}
SAFE_PATH_VARIABLES, PATH_VARIABLES = {"PYTHONSAFEPATH": "1"}, {"PYTHONPATH": "{root}/app"}
SETTINGS = [
    ((), {}),
    ((), SAFE_PATH_VARIABLES),
    ((), PATH_VARIABLES),
    (("-E",), SAFE_PATH_VARIABLES),
    (("-E",), PATH_VARIABLES),
    (("-s",), {}),
    (("-I",), {}),
    *([(("-P",), {})] if sys.version_info >= (3, 11) else []),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("programs").resolve()
    for folder in ("app", "here", "here/pack"):
        (root / folder).mkdir()
    for program in ("app/prog.py", "app/__main__.py", "here/prog.py", "here/pack/__main__.py", "here/pack/inner.py"):
        (root / program).write_text(PRINT_PATH_PROGRAM)
    (root / "here" / "pack" / "__init__.py").touch()
    (root / "here" / "link.py").symlink_to("../app/prog.py")
    (root / "linked").symlink_to("app")
    with zipfile.ZipFile(root / "app.zip", "w") as archive:
        archive.writestr("__main__.py", PRINT_PATH_PROGRAM)
    return root


def run(root, variables, *arguments):
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    return subprocess.run(
        [sys.executable, *(each.format(root=root) for each in arguments)],
        cwd=root / "here",
        env={**environment, **{name: value.format(root=root) for name, value in variables.items()}},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


@pytest.mark.parametrize(("flags", "variables"), SETTINGS, ids=str)
def test_program_run_by_gmongo_has_sys_path_of_program_run_by_interpreter(root, flags, variables):
    isolated = run(root, {}, "-I", "-c", "import gmongo; print(gmongo.version)")
    if isolated.stdout.strip() != __version__:
        pytest.skip("gmongo is not installed, which -I requires")
    for name, program in PROGRAMS.items():
        expected = run(root, variables, *flags, *program)
        assert run(root, variables, *flags, "-m", "gmongo", "--no-patch", *program).stdout == expected.stdout, name
        # With flags such as -I, the interpreter cannot run a module of the current directory, and
        # writes nothing to standard output.
        assert expected.stdout or "-m" in program, name

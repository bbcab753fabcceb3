"""``python -m gmongo`` gives a program the ``sys.path`` that the interpreter gives it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pytest

from gmongo._version import __version__
from tests.support.programs import TIMEOUT

pytestmark = pytest.mark.long

TELLS = "import sys; print(sys.path); print(sys.argv)\n"
PROGRAMS = {
    "in the current directory": ("prog.py",),
    "elsewhere": ("../app/prog.py",),
    "by its full path": ("{root}/app/prog.py",),
    "a link to it": ("link.py",),
    "in a linked directory": ("../linked/prog.py",),
    "a directory": ("../app",),
    "a zip file": ("../app.zip",),
    "a module": ("-m", "prog"),
    "a package": ("-m", "pack"),
    "a module in a package": ("-m", "pack.inner"),
}
SAFE, PATH = {"PYTHONSAFEPATH": "1"}, {"PYTHONPATH": "{root}/app"}
SETTINGS = [
    *[((), each) for each in ({}, SAFE, PATH)],
    *[(("-E",), each) for each in (SAFE, PATH)],
    (("-s",), {}),
    (("-I",), {}),
    *([(("-P",), {})] if sys.version_info >= (3, 11) else []),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("programs").resolve()
    for folder in ("app", "here", "here/pack"):
        (root / folder).mkdir()
    for program in ("app/prog.py", "app/__main__.py", "here/prog.py", "here/pack/__main__.py", "here/pack/inner.py"):
        (root / program).write_text(TELLS)
    (root / "here" / "pack" / "__init__.py").touch()
    (root / "here" / "link.py").symlink_to("../app/prog.py")
    (root / "linked").symlink_to("app")
    with zipfile.ZipFile(root / "app.zip", "w") as archive:
        archive.writestr("__main__.py", TELLS)
    return root


def told(folders, variables, *arguments):
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    return subprocess.run(
        [sys.executable, *(each.format(root=folders) for each in arguments)],
        cwd=folders / "here",
        env={**inherited, **{name: value.format(root=folders) for name, value in variables.items()}},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


@pytest.mark.parametrize(("flags", "variables"), SETTINGS, ids=str)
def test_a_program_has_the_interpreters_sys_path(folders, flags, variables):
    found = told(folders, {}, "-I", "-c", "import gmongo; print(gmongo.version)")
    if found.stdout.strip() != __version__:
        pytest.skip("gmongo is not installed, and -I sees nothing else")
    for name, program in PROGRAMS.items():
        expected = told(folders, variables, *flags, *program)
        assert told(folders, variables, *flags, "-m", "gmongo", "--no-patch", *program).stdout == expected.stdout, name
        assert expected.stdout or "-m" in program, name  # a module of the current directory may be out of reach

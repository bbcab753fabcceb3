"""If the package of an extra is missing, the error names the extra."""

from __future__ import annotations

import configparser
import inspect
import re

import pytest

from gmongo.testing.embedded import default_engine
from tests.extras import programs
from tests.support.cases import rows, with_cases
from tests.support.programs import ROOT, run_python

# First lines of a test program, after which each import of a hidden package fails.
_HIDING_LINES = """
import sys

class Hiding:
    def __init__(self, hidden):
        self.finders, self.hidden = list(sys.meta_path), hidden

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.hidden:
            return None
        return next((spec for each in self.finders if (spec := each.find_spec(name, path, target))), None)

sys.meta_path[:] = [Hiding({hidden!r})]
"""
# Extras that only install packages for the examples and for the development of gmongo.
TOOL_EXTRAS = {"examples", "dev"}
EXTRAS_WITHOUT_PACKAGES = {"aws"}
# Pairs of an extra and a package of the extra.
EXTRA_PAIRS = {(case["extra"], case["package"]) for case in rows(__file__, "test_error_of_missing_package_names_extra")}


def declared_extras() -> set[str]:
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg")
    return set(setup["options.extras_require"])


def test_case_table_covers_every_extra() -> None:
    assert {extra for extra, _ in EXTRA_PAIRS} | TOOL_EXTRAS | EXTRAS_WITHOUT_PACKAGES == declared_extras()


def test_tox_has_environment_for_each_extra() -> None:
    settings = (ROOT / "tox.ini").read_text()
    [factors] = re.findall(r"^\[testenv:extra-\{(.*)\}\]$", settings, re.MULTILINE)
    extras = {name for name in factors.split(",") if inspect.isfunction(getattr(programs, name, None))}
    assert set(factors.split(",")) == extras == declared_extras() - TOOL_EXTRAS | {"none"}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("extra", sorted({"none", *declared_extras()} - TOOL_EXTRAS))
def test_program_of_extra_succeeds(extra: str) -> None:
    for package in {package for name, package in EXTRA_PAIRS if name == extra}:
        pytest.importorskip(package)
    if extra == "mongod" and default_engine() != "mongod":
        pytest.skip("no mongod runs here")
    done = run_python("-m", "tests.extras", extra)
    assert done.stdout == f"{extra}: done\n", done.stderr[-600:]


@pytest.mark.one_in(6)
@with_cases
def test_error_of_missing_package_names_extra(extra: str, package: str, program: str) -> None:
    """Hide a package of the extra, and run a program that needs the package."""
    done = run_python("-c", _HIDING_LINES.replace("{hidden!r}", repr({package})) + program)
    last_lines = [line for line in done.stderr.splitlines() if line.strip()][-2:]
    assert any(f"gmongo[{extra}]" in line for line in last_lines), done.stderr[-600:]

"""Whatever passes with PyMongo passes with gmongo: libraries' own tests, and applications of them.

A library that is not installed is skipped, but ``tox -e libraries`` installs all, and there it is a failure. The
variable ``GMONGO_CHECKOUT_MONGOENGINE``, and so on, names a checkout of a library's repository to run instead.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .both import outcomes
from .sources import all_must_be_there, require, source_of
from .suites import SCRIPTS, SUITES

pytestmark = pytest.mark.long

PAGE = Path(__file__).resolve().parents[2] / "docs" / "migrating.md"
SCRIPTS_FOLDER = Path(__file__).parent / "scripts"


def compared(tests, folder, tmp_path, exceptions=frozenset(), **how):
    """What passes with PyMongo, what of that does not with gmongo, and what does not pass with PyMongo. A test that
    fails gets a second chance, since some libraries' tests look at the clock.

    :param exceptions: the names of those that are known to fail with gmongo.
    """
    expected, beyond_both = outcomes("pymongo", tests, folder, tmp_path / "pymongo.log", **how)
    missing = expected - outcomes("gmongo", tests, folder, tmp_path / "gmongo.log", **how)[0]
    if without_parameters(missing) - set(exceptions):
        missing -= outcomes("gmongo", tests, folder, tmp_path / "gmongo-again.log", **how)[0]
    print(
        f"{len(expected)} pass with PyMongo, {len(beyond_both)} do not; of the former, {len(missing)} fail with gmongo"
    )
    if missing or not expected:
        for log in sorted(tmp_path.glob("*.log")):
            print(log.name, *log.read_text(errors="replace").splitlines()[-100:], sep="\n")
    return expected, missing, beyond_both


def without_parameters(names):
    return {name.rpartition("::")[2].partition("[")[0].rpartition(".")[2] for name in names}


@pytest.mark.timeout(2000)
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.distribution)
def test_a_librarys_own_tests(suite, tmp_path):
    require(suite.distribution)
    if suite.checkout is not None:
        folder = Path(suite.checkout)
    elif not suite.in_distribution:
        pytest.skip(f"{suite.checkout_variable} names no checkout; there is a script instead")
    elif not all_must_be_there():
        pytest.skip("tox -e libraries runs it")
    else:
        folder = source_of(suite.distribution)
    how = {"port": suite.port, "runner": suite.runner, "deployment": suite.deployment}
    expected, missing, _ = compared(suite.tests, folder / suite.folder, tmp_path, suite.exceptions, **how)
    assert len(expected) >= suite.at_least
    assert without_parameters(missing) == set(suite.exceptions), sorted(missing)


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_an_application_of_a_library(name, tmp_path):
    require(*SCRIPTS[name])
    script = str(SCRIPTS_FOLDER / f"{name}.py")
    expected, missing, beyond_both = compared([script], tmp_path, tmp_path, deployment=("--standalone",))
    assert expected
    assert missing == beyond_both == set()


def test_the_page_names_them_all():
    page = PAGE.read_text(encoding="utf-8").lower()
    named = {suite.distribution for suite in SUITES} | {name for names in SCRIPTS.values() for name in names[:1]}
    assert sorted(name for name in named if f"| {name} " not in page) == []


def test_every_script_is_run():
    assert {path.stem for path in SCRIPTS_FOLDER.glob("[a-z]*.py")} == set(SCRIPTS)

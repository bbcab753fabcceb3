"""Run the test suites and applications of libraries with PyMongo and with gmongo.

Each test that passes with PyMongo must also pass with gmongo, unless the test is an exemption.

If a library is not installed, its tests are skipped. With ``tox -e libraries``, the tests of a
missing library fail. An environment variable such as ``GMONGO_CHECKOUT_MONGOENGINE`` selects a
checkout of a library instead of the source distribution.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .both_drivers import run_with_driver
from .sources import libraries_are_required, require_distributions, unpack_source
from .suites import SCRIPTS, SUITES

pytestmark = pytest.mark.long

PAGE = Path(__file__).resolve().parents[2] / "docs" / "migrating.md"
SCRIPTS_FOLDER = Path(__file__).parent / "scripts"


def compare_drivers(tests, folder, tmp_path, exemptions=frozenset(), **options):
    """Run tests with PyMongo and with gmongo.

    Return the tests that pass with PyMongo, the tests that pass only with PyMongo, and the tests that
    do not pass with PyMongo. If tests fail unexpectedly with gmongo, repeat the gmongo run, because
    some tests depend on the clock.

    :param exemptions: Names of the tests whose failure with gmongo is expected.
    """
    expected, failing_with_pymongo = run_with_driver("pymongo", tests, folder, tmp_path / "pymongo.log", **options)
    missing = expected - run_with_driver("gmongo", tests, folder, tmp_path / "gmongo.log", **options)[0]
    if without_parameters(missing) - set(exemptions):
        missing -= run_with_driver("gmongo", tests, folder, tmp_path / "gmongo-again.log", **options)[0]
    print(f"PyMongo: {len(expected)} pass, {len(failing_with_pymongo)} fail; only with PyMongo: {len(missing)} pass")
    if missing or not expected:
        for log in sorted(tmp_path.glob("*.log")):
            print(log.name, *log.read_text(errors="replace").splitlines()[-100:], sep="\n")
    return expected, missing, failing_with_pymongo


def without_parameters(names):
    return {name.rpartition("::")[2].partition("[")[0].rpartition(".")[2] for name in names}


@pytest.mark.timeout(2000)
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.distribution)
def test_library_tests_pass_with_gmongo(suite, tmp_path):
    require_distributions(suite.distribution)
    if suite.checkout is not None:
        folder = Path(suite.checkout)
    elif not suite.in_distribution:
        pytest.skip(f"{suite.checkout_variable} names no checkout; there is a script instead")
    elif not libraries_are_required():
        pytest.skip("tox -e libraries runs the suite")
    else:
        folder = unpack_source(suite.distribution)
    options = {"port": suite.port, "runner": suite.runner, "deployment": suite.deployment}
    expected, missing, _ = compare_drivers(suite.tests, folder / suite.folder, tmp_path, suite.exemptions, **options)
    assert len(expected) >= suite.min_passed
    assert without_parameters(missing) == set(suite.exemptions), sorted(missing)


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_library_application_passes_with_gmongo(name, tmp_path):
    require_distributions(*SCRIPTS[name])
    script = str(SCRIPTS_FOLDER / f"{name}.py")
    expected, missing, failing_with_pymongo = compare_drivers([script], tmp_path, tmp_path)
    assert expected
    assert missing == failing_with_pymongo == set()


def test_page_about_migration_lists_each_library():
    page = PAGE.read_text(encoding="utf-8").lower()
    names = {suite.distribution for suite in SUITES} | {name for names in SCRIPTS.values() for name in names[:1]}
    assert sorted(name for name in names if f"| {name} " not in page) == []


def test_each_script_is_in_table_of_scripts():
    assert {path.stem for path in SCRIPTS_FOLDER.glob("[a-z]*.py")} == set(SCRIPTS)

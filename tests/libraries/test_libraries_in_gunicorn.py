"""Tests of Flask-PyMongo and MongoEngine applications in gevent workers of gunicorn.

An application uses gmongo if gunicorn reads the file ``gunicorn.conf.py`` of the example, and
PyMongo otherwise.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import gevent
import pytest

from gmongo.testing import Deployment
from tests.apps.hosting import hosted, open_connections
from tests.support.wait import until

from .drivers import connected_drivers, uri_with_database
from .sources import require_distributions
from .visits import VISITS, Browser

pytestmark = pytest.mark.long

pytest.importorskip("gunicorn")
DISTRIBUTIONS = {"flask_pymongo": "flask-pymongo", "mongoengine": "mongoengine"}
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COMMAND = ("-m", "gunicorn", "-k", "gevent", "-w", "2", "-b", "127.0.0.1:0", "--graceful-timeout", "5")
ACCESS_LOG_OPTIONS = ("--access-logfile", "-", "--access-logformat", "answered by %(p)s")
SETTINGS = EXAMPLES.parent / "tests" / "apps" / "gunicorn_settings.py"


def test_gunicorn_configuration_of_examples_is_one_line():
    for name in VISITS:
        assert (EXAMPLES / name / "gunicorn.conf.py").read_text() == "import gmongo.as_pymongo\n"


@pytest.mark.parametrize("name", sorted(VISITS))
def test_application_gives_equal_responses_with_both_drivers(name, tmp_path):
    require_distributions(DISTRIBUTIONS[name])
    settings = tmp_path / "gunicorn.conf.py"
    settings.write_text((EXAMPLES / name / "gunicorn.conf.py").read_text() + SETTINGS.read_text())
    pymongo_responses, pymongo_errors = run_visits(name, "PyMongo", tmp_path / "pymongo", "-c", str(SETTINGS))
    # PyMongo cannot run with `--preload`, because gunicorn loads the application before the fork and
    # the monkey-patch.
    for log, options in (("gmongo", ()), ("preloaded", ("--preload",))):
        gmongo_responses, errors = run_visits(name, "gmongo", tmp_path / log, "-c", str(settings), *options)
        assert gmongo_responses == pymongo_responses
        # Old versions of gevent log errors when a worker ends, regardless of the driver.
        assert errors <= pymongo_errors


def run_visits(name, driver, log, *options):
    """Run an application, and send the requests of one visitor and then of eight concurrent visitors.

    Return the responses to these nine visitors, and the set of warnings and errors in gunicorn's log.
    """
    with (
        Deployment.replica_set(members=1) as deployment,
        hosted(
            deployment,
            log,
            *COMMAND,
            *ACCESS_LOG_OPTIONS,
            *options,
            f"examples.{name}.app:app",
            MONGO_URI=uri_with_database(deployment, "example"),
        ) as host,
    ):
        browser = Browser(host.port())
        first_responses = VISITS[name](browser, "one")
        visitors = [gevent.spawn(VISITS[name], browser, f"visitor-{number}") for number in range(8)]
        gevent.joinall(visitors, raise_error=True)
        assert connected_drivers(deployment) == {driver}
        # Send further requests until both workers have replied, because a new worker ignores the
        # signal that ends gunicorn.
        visitor_numbers = itertools.count(8)
        while len(set(host.matches(r"answered by <(\d+)>"))) < 2:
            VISITS[name](browser, f"visitor-{next(visitor_numbers)}")
        assert host.end() == 0
        if driver == "gmongo":
            until(lambda: not open_connections(deployment))
        # gunicorn does not always close the temporary files of its workers.
        lines = [line for line in host.warnings_and_errors if "unclosed file <_io.FileIO" not in line]
        errors = {re.sub("0x[0-9a-f]+", "", line) for line in lines}
        return [first_responses, *(each.value for each in visitors)], errors

"""Unchanged Flask-PyMongo and MongoEngine applications under gunicorn's gevent workers: one line of
``gunicorn.conf.py`` decides on the driver."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import gevent
import pytest

from gmongo.testing import Deployment
from tests.apps.hosting import connections, hosted
from tests.support.wait import until

from .drivers import database_of, drivers_seen
from .sources import require
from .visits import VISITS, Browser

pytestmark = pytest.mark.long

pytest.importorskip("gunicorn")
DISTRIBUTIONS = {"flask_pymongo": "flask-pymongo", "mongoengine": "mongoengine"}
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COMMAND = ("-m", "gunicorn", "-k", "gevent", "-w", "2", "-b", "127.0.0.1:0", "--graceful-timeout", "5")
LOGGED = ("--access-logfile", "-", "--access-logformat", "answered by %(p)s")
SETTINGS = EXAMPLES.parent / "tests" / "apps" / "gunicorn_settings.py"


def test_the_line_is_one():
    for name in VISITS:
        assert (EXAMPLES / name / "gunicorn.conf.py").read_text() == "import gmongo.as_pymongo\n"


@pytest.mark.parametrize("name", sorted(VISITS))
def test_an_application_answers_the_same_on_both_drivers(name, tmp_path):
    """With gmongo also where gunicorn loads it before it forks and patches, which PyMongo does not survive."""
    require(DISTRIBUTIONS[name])
    with_the_line = tmp_path / "gunicorn.conf.py"
    with_the_line.write_text((EXAMPLES / name / "gunicorn.conf.py").read_text() + SETTINGS.read_text())
    line = ("-c", str(with_the_line))
    on_pymongo, trouble = answers(name, "PyMongo", tmp_path / "pymongo", "-c", str(SETTINGS))
    for log, options in (("gmongo", ()), ("preloaded", ("--preload",))):
        on_gmongo, further_trouble = answers(name, "gmongo", tmp_path / log, *line, *options)
        assert on_gmongo == on_pymongo
        assert further_trouble <= trouble  # old versions of gevent have some of their own when a worker ends


def answers(name, driver, log, *options):
    """What one visitor gets, and then several at once, and the trouble in the log; the database knows the driver."""
    with (
        Deployment.replica_set(members=1) as deployment,
        hosted(
            deployment,
            log,
            *COMMAND,
            *LOGGED,
            *options,
            f"examples.{name}.app:app",
            MONGO_URI=database_of(deployment, "example"),
        ) as host,
    ):
        browser = Browser(host.port())
        alone = VISITS[name](browser, "one")
        crowd = [gevent.spawn(VISITS[name], browser, f"visitor-{number}") for number in range(8)]
        gevent.joinall(crowd, raise_error=True)
        assert drivers_seen(deployment) == {driver}
        further = itertools.count(8)  # a worker that is only just being forked does not hear that it is to end
        while len(set(host.said(r"answered by <(\d+)>"))) < 2:
            VISITS[name](browser, f"visitor-{next(further)}")
        assert host.end() == 0
        if driver == "gmongo":
            until(lambda: not connections(deployment))
        trouble = {re.sub("0x[0-9a-f]+", "", line) for line in host.trouble}
        return [alone, *(each.value for each in crowd)], trouble

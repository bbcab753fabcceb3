"""The libraries that have to work as they do on PyMongo, and what proves it for each."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

DJANGO = ("django", "test", "--noinput", "--settings", "django_settings")  # in the folder `plugins`

_NO_GET_MORE = (
    "the test's server opens a cursor without its namespace, which no real one does: ProtocolError. (PyMongo takes the "
    "empty first batch for the end of the cursor, and never asks for more.)"
)
# Their settings turn warnings into errors, one of pytest-asyncio's too.
_LOOP_SCOPE = ("-o", "asyncio_default_fixture_loop_scope=function")
_MOCKED_DNS = "the test replaces a function of PyMongo's that asks the DNS"


@dataclass(frozen=True)
class Suite:
    """A library's own tests.

    :ivar distribution: that carries the library, and its tests in its source distribution.
    :ivar tests: what the runner is told to run there.
    :ivar at_least: so many of them pass with PyMongo.
    :ivar exceptions: tests that pass with PyMongo only, without their parameters, and why.
    :ivar port: where the tests look for a server.
    :ivar in_distribution: the source distribution has the tests; otherwise only a checkout has them.
    :ivar folder: of the distribution, where they are run.
    :ivar runner: what runs them; pytest if it is empty.
    :ivar deployment: that they need.
    """

    distribution: str
    tests: tuple[str, ...]
    at_least: int
    exceptions: dict[str, str] = field(default_factory=dict)
    port: int = 27017
    in_distribution: bool = True
    folder: str = ""
    runner: tuple[str, ...] = ()
    deployment: tuple[str, ...] = ("--standalone",)

    @property
    def checkout_variable(self) -> str:
        """The environment variable that may name a checkout of the library's repository, to be run instead."""
        return f"GMONGO_CHECKOUT_{re.sub('[^A-Z]+', '_', self.distribution.upper())}"

    @property
    def checkout(self) -> str | None:
        return os.environ.get(self.checkout_variable)


SUITES = (
    Suite("apscheduler", ("tests/test_jobstores.py", "-k", "mongodb"), 52),
    Suite("bunnet", ("tests/odm",), 360),
    Suite("cachelib", (*_LOOP_SCOPE, "tests/test_mongodb_cache.py"), 44),
    Suite(
        "celery",
        ("t/unit/backends/test_mongodb.py",),
        130,
        {"test_init_mongodb_dnspython2_pymongo4_seedlist": _MOCKED_DNS},
    ),
    Suite(
        "django-mongodb-backend",
        (
            "aggregation_",
            "backend_",
            "basic_",
            "lookup_",
            "model_fields_",
            "models_",
            "queries_",
            "raw_query_",
            "transaction_hooks_",
            "transactions_",
            "update_",
            "validators_",
        ),
        470,
        {"test_database_name_parsed_from_srv_host": _MOCKED_DNS},
        folder="tests",
        runner=DJANGO,
        deployment=("--replica-set", "1"),
    ),
    Suite("kombu", ("t/unit/transport/test_mongodb.py",), 44),
    Suite("langgraph-checkpoint-mongodb", ("tests/unit_tests",), 139),
    Suite(
        "limits",
        (*_LOOP_SCOPE, "-p", "without_docker", "tests/test_strategy.py", "tests/test_storage.py", "-k", "mongodb"),
        20,
        port=37017,
    ),
    Suite("ming", ("ming/tests",), 370),
    Suite(
        "mongomock",
        # Not those that sort documents with ids of the driver's among documents with ids of the application's.
        ("tests", "-k", "not test__aggregate_project_with_subfields"),
        780,
        {"test__getting_default_database_valid": "the name of a database in a URI has a NUL, which gmongo refuses"},
    ),
    Suite("opentelemetry-instrumentation-pymongo", ("tests",), 24),
    Suite(
        "sentry-sdk",
        ("tests/integrations/pymongo",),
        51,
        {
            name + variant: _NO_GET_MORE
            for name in (
                "test_transactions",
                "test_segment_span_streaming",
                "test_breadcrumbs",
                "test_breadcrumbs_span_streaming",
            )
            for variant in ("", "_with_data_collection")
        }
        | {"test_span_origin": _NO_GET_MORE, "test_span_origin_span_streaming": _NO_GET_MORE},
    ),
    Suite("umongo", ("tests", "-k", "not motor and not txmongo"), 185),
    # Their source distributions have no tests, or not those that need a server; the scripts have.
    Suite("mongoengine", ("tests",), 1000, in_distribution=False),
    Suite("flask-pymongo", ("tests",), 20, in_distribution=False),
    Suite("mongo-thingy", ("tests",), 60, in_distribution=False),
    Suite("flask-session", ("tests/test_mongodb.py",), 1, in_distribution=False),
)

# A file in the folder `scripts`, and the distributions that it needs. A library has a script only if its tests do not
# judge gmongo: no source distribution has the tests, they need no server, or most of them fail for another reason.
SCRIPTS = {
    "celery_worker": ("celery", "kombu"),
    "flask_limiter_limits": ("flask-limiter",),
    "flask_pymongo_application": ("flask-pymongo",),
    "flask_session_sessions": ("flask-session", "msgspec"),
    "instrumentation_newrelic": ("newrelic",),
    "instrumentation_sentry": ("sentry-sdk",),
    "locust_user": ("locust", "matplotlib"),
    "mongo_thingy_documents": ("mongo-thingy",),
    "mongoengine_documents": ("mongoengine",),
}

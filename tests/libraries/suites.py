"""The test suites of libraries. Each test that passes with PyMongo must also pass with gmongo."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

# The Django settings module for these tests is in the folder `plugins`.
DJANGO = ("django", "test", "--noinput", "--settings", "django_settings")

_NO_GET_MORE = (
    "the server of the test opens a cursor without namespace, which raises ProtocolError. (PyMongo closes the cursor "
    "after the empty first batch.)"
)
# Option that prevents a warning of pytest-asyncio, because the pytest settings of some libraries
# turn warnings into errors.
_LOOP_SCOPE = ("-o", "asyncio_default_fixture_loop_scope=function")
_MOCKED_DNS = "the test replaces a function of PyMongo that sends DNS queries"


@dataclass(frozen=True)
class Suite:
    """The tests of one library, and the command and server that the tests need.

    :ivar distribution: Name of the library's distribution.
    :ivar tests: Arguments of the runner that select the tests.
    :ivar at_least: Number of tests that must pass with PyMongo at least, so that the comparison
        cannot be empty.
    :ivar exceptions: Tests that pass with PyMongo but fail with gmongo: the name of the test -> the
        reason.
    :ivar port: Port of the server to which the tests connect.
    :ivar in_distribution: True if the source distribution contains the tests.
    :ivar folder: Working directory of the tests, relative to the source folder.
    :ivar runner: Command that runs the tests. If empty, pytest runs the tests.
    :ivar deployment: Command line options of the simulated deployment.
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
        """Return the name of the variable in which a user can give the path of a checkout of the library."""
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
        # The excluded tests fail because they expect generated IDs to be greater than explicit IDs
        # of other documents.
        ("tests", "-k", "not test__aggregate_project_with_subfields"),
        780,
        {"test__getting_default_database_valid": "gmongo rejects the null character in the database name of the URI"},
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
    # The source distributions of these libraries contain no tests that use a server, so scripts
    # test the libraries.
    Suite("mongoengine", ("tests",), 1000, in_distribution=False),
    Suite("flask-pymongo", ("tests",), 20, in_distribution=False),
    Suite("mongo-thingy", ("tests",), 60, in_distribution=False),
    Suite("flask-session", ("tests/test_mongodb.py",), 1, in_distribution=False),
)

# File in the folder `scripts` -> required distributions. A library has a script if its own tests
# are not in the source distribution, use no server, or mostly fail with PyMongo.
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

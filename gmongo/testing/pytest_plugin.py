"""Fixtures for pytest. pytest loads this plugin automatically if gmongo is installed.

`mongodb_server` is one real server or replica set for the whole session. `mongodb_client` is a client
of this server. `mongodb_database` is an empty database for each test. `virtual_time` is a virtual
clock. The other fixtures are simulated deployments. Each test gets a new deployment, which runs in
the hub of the test, in a native thread or in a process. The start of a deployment takes 1 ms in the
hub, some milliseconds in a thread, and 1 s in a process. A fixture imports and starts nothing until a
test requests the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gmongo import MongoClient
    from gmongo.database import Database
    from gmongo.testing import VirtualTime
    from gmongo.testing.shared_server import RunningServer


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `mongodb_server` to the command line."""
    group = parser.getgroup("gmongo", "real MongoDB servers")
    group.addoption(
        "--mongodb-members",
        type=int,
        default=0,
        metavar="N",
        help="mongodb_server is a replica set of N members; by default mongodb_server is a standalone",
    )
    group.addoption(
        "--mongodb-shared",
        action="store_true",
        help="all processes of pytest-xdist share one mongodb_server; by default each process starts a server",
    )


@pytest.fixture(scope="session")
def mongodb_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The real server of the session. The fixture value has the attribute `uri`.

    If the environment variable ``MONGODB_URI`` is set, the fixture uses the server of this URI. If
    the variable is not set, the fixture starts a server.
    """
    from gmongo.testing import shared_server

    member_count = request.config.getoption("--mongodb-members")
    if request.config.getoption("--mongodb-shared") and hasattr(request.config, "workerinput"):
        context = shared_server.share_server(tmp_path_factory.getbasetemp().parent, member_count)
    else:
        context = shared_server.start_server(member_count)
    with context as server:
        if server.embedded is None:
            _require_reply(server.uri)
        yield server


def _require_reply(uri: str) -> None:
    # If the server does not reply, the fixture fails once for the session. Without this check, each
    # test and each teardown would wait for serverSelectionTimeoutMS.
    from gmongo import MongoClient
    from gmongo.errors import PyMongoError

    reason = None
    try:
        with MongoClient[dict[str, Any]](uri) as client:
            client.wait_until_ready()
    except PyMongoError as error:
        reason = str(error)
    if reason is not None:
        pytest.fail(f"the server of MONGODB_URI is not ready: {reason}", pytrace=False)


@pytest.fixture
def mongodb_client(mongodb_server: RunningServer) -> Iterator[MongoClient[dict[str, Any]]]:
    """A client of `mongodb_server` for one test."""
    from gmongo import MongoClient

    with MongoClient[dict[str, Any]](mongodb_server.uri) as client:
        yield client


@pytest.fixture
def mongodb_database(mongodb_client: MongoClient[dict[str, Any]]) -> Iterator[Database[dict[str, Any]]]:
    """An empty database of `mongodb_server` for one test. The fixture drops the database after the test."""
    from gmongo._random import urandom

    database = mongodb_client[f"test_{urandom(6).hex()}"]
    yield database
    mongodb_client.drop_database(database.name)


def _create_fixture(class_name: str, method_name: str, description: str) -> Any:
    """Return a fixture that yields a simulated deployment.

    :param class_name: the name of a class of :mod:`gmongo.testing`.
    :param method_name: the name of the method that creates the deployment.
    :param description: the docstring of the fixture.
    """

    def fixture() -> Iterator[Any]:
        import gmongo.testing

        with getattr(getattr(gmongo.testing, class_name), method_name)() as deployment:
            yield deployment

    fixture.__doc__ = description
    return pytest.fixture(fixture)


_STANDALONE_TEXT, _SET_TEXT, _CLUSTER_TEXT = (
    "A simulated server without replication",
    "A simulated replica set of three members",
    "A simulated sharded cluster of two mongos",
)
mongodb_standalone = _create_fixture("Deployment", "standalone", f"{_STANDALONE_TEXT}.")
mongodb_replica_set = _create_fixture("Deployment", "replica_set", f"{_SET_TEXT}.")
mongodb_sharded_cluster = _create_fixture("Deployment", "sharded", f"{_CLUSTER_TEXT}.")
mongodb_standalone_thread = _create_fixture(
    "DeploymentThread", "standalone", f"{_STANDALONE_TEXT}, in a native thread."
)
mongodb_replica_set_thread = _create_fixture("DeploymentThread", "replica_set", f"{_SET_TEXT}, in a native thread.")
mongodb_sharded_cluster_thread = _create_fixture("DeploymentThread", "sharded", f"{_CLUSTER_TEXT}, in a native thread.")
mongodb_standalone_process = _create_fixture(
    "DeploymentProcess", "standalone", f"{_STANDALONE_TEXT}, in a separate process."
)
mongodb_replica_set_process = _create_fixture(
    "DeploymentProcess", "replica_set", f"{_SET_TEXT}, in a separate process."
)
mongodb_sharded_cluster_process = _create_fixture(
    "DeploymentProcess", "sharded", f"{_CLUSTER_TEXT}, in a separate process."
)


@pytest.fixture
def virtual_time() -> Iterator[VirtualTime]:
    """A virtual clock, which jumps to the next timer when all greenlets wait.

    A test may request this fixture before or after the fixture of a simulated deployment.
    """
    from gmongo.testing import VirtualTime

    with VirtualTime() as time:
        yield time

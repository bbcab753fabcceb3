"""The state of a process, and the WSGI application that serves the status page."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from time import monotonic
from typing import Any
from wsgiref.validate import validator

import gevent
import pytest
from gevent.event import Event

import gmongo
from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.status import StatusPage, process_state
from gmongo.testing import Deployment
from tests.support.pools import checked_out
from tests.support.wait import eventually


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with Deployment.replica_set(members=1) as started:
        yield started


@pytest.fixture
def connect(deployment: Deployment) -> Iterator[Callable[..., MongoClient[Any]]]:
    clients: list[MongoClient[Any]] = []

    def create_client(**options: Any) -> MongoClient[Any]:
        clients.append(MongoClient(deployment.uri, **options))
        return clients[-1]

    yield create_client
    for client in clients:
        client.close()


def state_of(client: MongoClient[Any], query_text: bool = False) -> dict[str, Any]:
    """Return the state of a client after encoding to JSON and decoding."""
    state = json.loads(json.dumps(process_state(query_text)))
    (client_state,) = [each for each in state["clients"] if each["number"] == client._executor.number]
    return dict(client_state)


def operation_phases(client: MongoClient[Any]) -> list[str]:
    operations = state_of(client)["operations"]
    assert all(0 <= each["sinceMS"] < 60_000 for each in operations)
    return [each["phase"] for each in operations]


def send_wsgi_request(application: Any, query: str = "", method: str = "GET") -> tuple[str, dict[str, str], bytes]:
    """Send a request to a WSGI application through the validator of wsgiref. Return the status, the
    headers and the body.
    """
    responses: list[Any] = []
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "/debug/mongodb",
        "PATH_INFO": "",
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "wsgi.url_scheme": "http",
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }

    def start_response(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Any:
        responses.append((status, dict(headers)))
        return lambda _data: None

    body = validator(application)(environ, start_response)
    content = b"".join(body)
    body.close()
    ((status, headers),) = responses
    return status, headers, content


def test_state_shows_greenlets_on_a_connection_and_in_the_wait_queue(connect: Any, deployment: Deployment) -> None:
    client = connect(maxPoolSize=1)
    client.admin.command("ping")
    deployment.members[0].freeze()
    greenlets = [gevent.spawn(client.shop.orders.find_one, {"secret": "hunter2"}) for _ in range(3)]
    eventually(lambda: operation_phases(client).count("connection check-out") == 2)
    state = state_of(client)
    assert operation_phases(client).count("on a connection") == 1
    (operation,) = [each for each in state["operations"] if each["phase"] == "on a connection"]
    assert operation["operation"] == "find"
    assert "Greenlet" in operation["greenlet"]
    assert operation["sinceMS"] > 0
    (server,) = state["servers"]
    assert (server["pool"]["inUse"], server["pool"]["waiting"], server["pool"]["maxPoolSize"]) == (1, 2, 1)
    assert server["pool"]["oldestWaitMS"] > 0
    assert "hunter2" not in json.dumps(process_state(True))
    deployment.members[0].thaw()
    gevent.joinall(greenlets)
    assert operation_phases(client) == []


def test_state_lists_only_200_longest_operations(connect: Any, deployment: Deployment) -> None:
    client = connect(maxPoolSize=1)
    client.admin.command("ping")
    deployment.members[0].freeze()
    greenlets = [gevent.spawn(client.shop.orders.find_one) for _ in range(250)]
    state = eventually(lambda: (current := state_of(client))["servers"][0]["pool"]["waiting"] == 249 and current)
    durations = [each["sinceMS"] for each in state["operations"]]
    assert len(durations) == 200
    assert durations == sorted(durations, reverse=True)
    deployment.members[0].thaw()
    gevent.joinall(greenlets)


def test_state_shows_operation_in_server_selection(connect: Any, deployment: Deployment) -> None:
    deployment.members[0].kill()
    client = connect()
    waiting = gevent.spawn(client.shop.orders.insert_one, {})
    eventually(lambda: operation_phases(client) == ["server selection"])
    assert state_of(client)["operations"][0]["operation"] == "insert"
    state = eventually(lambda: (current := state_of(client))["history"] and current)
    assert state["servers"][0]["type"] == "Unknown"
    assert state["history"][0]["what"] == "check failed"
    assert "refused" in state["history"][0]["error"]
    deployment.members[0].restart()
    waiting.kill()
    assert operation_phases(client) == []


def test_state_shows_operation_that_connects(connect: Any, deployment: Deployment) -> None:
    client = connect()
    client.admin.command("ping")
    checked_out_event, release = Event(), Event()

    def check_out() -> None:
        with checked_out(client._topology.pools()[0]):
            checked_out_event.set()
            release.wait()

    holder = gevent.spawn(check_out)
    checked_out_event.wait()
    deployment.members[0].delay(0.2)
    connecting = gevent.spawn(client.shop.orders.find_one)
    eventually(lambda: "connecting" in operation_phases(client))
    (connecting_state,) = [each for each in state_of(client)["operations"] if each["phase"] == "connecting"]
    assert "find_one" in connecting_state["greenlet"]
    deployment.members[0].delay(0)
    release.set()
    gevent.joinall([connecting, holder], raise_error=True)


def test_state_shows_backoff_tokens_and_retries(connect: Any, deployment: Deployment) -> None:
    client = connect(baseBackoffMS=60_000)
    labels = ["SystemOverloadedError", "RetryableError"]
    data = {"failCommands": ["find"], "errorCode": 462, "errorLabels": labels}
    deployment.set_fail_point("failCommand", {"times": 1}, data)
    client._executor.overload.jitter = lambda: 1.0
    waiting = gevent.spawn(client.shop.orders.find_one)
    eventually(lambda: operation_phases(client) == ["back-off"])
    assert state_of(client)["operations"][0]["operation"] == "find"
    assert state_of(client)["retries"]["tokens"] == 999
    waiting.kill()
    assert operation_phases(client) == []
    deployment.set_fail_point("failCommand", {"times": 1}, {"failCommands": ["find"], "errorCode": 89})
    client.shop.orders.find_one()
    retries = state_of(client)["retries"]
    assert (retries["retries"], retries["others"]) == (1, 1)


def test_history_in_state_contains_election() -> None:
    began = monotonic()
    with (
        Deployment.replica_set(members=3) as deployment,
        MongoClient(deployment.uri, heartbeatFrequencyMS=500) as client,
    ):
        client.shop.orders.insert_one({})
        old_primary = deployment.members.primary
        assert old_primary is not None
        old_primary.step_down()
        eventually(lambda: "elected primary" in [each["what"] for each in state_of(client)["history"]])
        history = state_of(client)["history"]
        assert ("primary lost", old_primary.address) in [(each["what"], each["server"]) for each in history]
        elapsed = (monotonic() - began) * 1000
        assert all(0 <= each["agoMS"] <= each["sinceMS"] <= elapsed for each in history)


def test_slow_operation_has_query_text_only_on_request(connect: Any) -> None:
    client = connect(slow_operation_ms=0, tracing={"query_text_max_length": 100})
    client.shop.orders.find_one({"name": "hunter2"})
    (slow,) = state_of(client)["slow"]
    assert slow["operation"] == "find shop.orders"
    assert "text" not in slow
    (slow,) = state_of(client, query_text=True)["slow"]
    assert slow["text"].startswith('{"find": "orders", "filter": {"name": "hunter2"}')
    assert len(slow["text"]) <= 100
    page = StatusPage()
    assert b"hunter2" not in send_wsgi_request(page, "format=json")[2]
    assert b"hunter2" in send_wsgi_request(StatusPage(query_text=True), "format=json")[2]


def test_state_contains_no_user_name_and_no_password() -> None:
    with Deployment.standalone(users={"ada": "hunter2"}) as protected_deployment:
        address = protected_deployment.members[0].address
        rejected_client = MongoClient(f"mongodb://ada:hunter3@{address}/", serverSelectionTimeoutMS=500)
        with rejected_client, MongoClient(f"mongodb://ada:hunter2@{address}/") as client:
            with pytest.raises(PyMongoError):
                rejected_client.admin.command("ping")
            client.admin.command("ping")
            text = json.dumps([state_of(each, query_text=True) for each in (rejected_client, client)])
            assert "hunter2" not in text
            assert "hunter3" not in text
            assert "ada" not in text


def test_state_omits_closed_client(connect: Any) -> None:
    client = connect()
    number = client._executor.number
    assert number in [each["number"] for each in process_state()["clients"]]
    client.close()
    assert number not in [each["number"] for each in process_state()["clients"]]


def test_state_sorts_servers_by_address() -> None:
    with MongoClient(["c:1", "a:1", "b:1"], connect=False) as client:
        assert [server["address"] for server in state_of(client)["servers"]] == ["a:1", "b:1", "c:1"]


def test_state_of_unconnected_client_sends_no_command(deployment: Deployment) -> None:
    with MongoClient(deployment.uri, connect=False) as client:
        deployment.commands.clear()
        assert state_of(client)["servers"][0]["type"] == "Unknown"
        gevent.sleep(0.05)
        assert list(deployment.commands) == []


def test_page_has_security_headers_and_no_external_resource() -> None:
    status, headers, body = send_wsgi_request(StatusPage())
    assert status == "200 OK"
    assert headers["Content-Type"].startswith("text/html")
    assert headers["Cache-Control"] == "no-store"
    assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    for tag in (b"script", b"style"):
        content = body.partition(b"<" + tag + b">")[2].partition(b"</" + tag + b">")[0]
        hash_text = b64encode(sha256(content).digest()).decode()
        assert content and f"{tag.decode()}-src 'sha256-{hash_text}'" in headers["Content-Security-Policy"]
    assert b"http" not in body.replace(b"HTTP", b"")  # The page loads no external resource.


def test_json_format_of_state_has_version_and_clients(connect: Any) -> None:
    connect(appName="shop")
    status, headers, body = send_wsgi_request(StatusPage(), "format=html&format=json")
    assert (status, headers["Content-Type"]) == ("200 OK", "application/json")
    (process,) = json.loads(body)["processes"]
    assert process["version"] == gmongo.version
    assert "shop" in [each["application"] for each in process["clients"]]


def test_page_answers_methods_other_than_get_and_head_with_405() -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        status, headers, body = send_wsgi_request(StatusPage(), method=method)
        assert status.startswith("405")
        assert headers["Allow"] == "GET, HEAD"
        assert body == b""
    assert send_wsgi_request(StatusPage(), method="HEAD")[2] == b""


def test_client_does_not_import_the_status_package() -> None:
    program = (
        "import gmongo, sys; gmongo.MongoClient(connect=False); print([m for m in sys.modules if 'gmongo.status' in m])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "gmongo.status" not in result.stdout

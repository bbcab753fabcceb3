"""The page in a real browser, while a replica set loses its primary under load."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.pywsgi import WSGIServer

from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.status import StatusPage
from gmongo.testing import Deployment
from tests.support.browser import CHROMIUM, Page, browser
from tests.support.wait import until

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here (apt-get install chromium)")

# Where the picture of the documentation goes, if it is to be taken again.
PICTURE = os.environ.get("GMONGO_STATUS_PICTURE")


def rows(page: Page, table: str) -> list[list[str]]:
    """The cells of a table."""
    selector = f"[data-table={table}] tbody tr"
    return page.evaluate(  # type: ignore[no-any-return]
        f"[...document.querySelectorAll({selector!r})].map(row => [...row.cells].map(cell => cell.innerText))"
    )


def types(page: Page, deployment: Deployment) -> dict[str, str]:
    """Of the members; clients that other tests have left behind are on the page, too."""
    addresses = [member.address for member in deployment.members]
    return {row[0]: row[1] for row in rows(page, "servers") if row[0] in addresses}


def work(client: MongoClient[Any], number: int) -> None:
    """Reads and writes until it is killed, as a greenlet of an application does."""
    while True:
        try:
            client.shop.orders.update_one({"_id": number}, {"$inc": {"n": 1}}, upsert=True)
            client.shop.orders.find_one({"_id": number, "secret": "hunter2"})
        except PyMongoError:
            pass
        gevent.sleep(0.01)


def test_the_page_shows_how_a_replica_set_loses_its_primary_under_load() -> None:
    with (
        Deployment.replica_set(members=3) as deployment,
        MongoClient(
            deployment.uri, appName="shop", maxPoolSize=2, slow_operation_ms=200, heartbeatFrequencyMS=500
        ) as client,
        browser() as page,
    ):
        server = WSGIServer(("127.0.0.1", 0), StatusPage(), log=None)
        server.start()
        workers = [gevent.spawn(work, client, number) for number in range(8)]
        for number, worker in enumerate(workers):
            worker.name = f"worker-{number}"
        try:
            page.open(f"http://127.0.0.1:{server.server_port}/")
            watch(page, deployment)
        finally:
            gevent.killall(workers)
            server.stop()


def watch(page: Page, deployment: Deployment) -> None:
    until(lambda: sorted(types(page, deployment).values()) == ["RSPrimary", "RSSecondary", "RSSecondary"])
    first = deployment.members.primary
    assert first is not None
    assert types(page, deployment)[first.address] == "RSPrimary"
    first.kill()
    until(lambda: types(page, deployment).get(first.address) == "Unknown")
    until(lambda: sorted(types(page, deployment).values()) == ["RSPrimary", "RSSecondary", "Unknown"])
    happened = {row[0] for row in rows(page, "history")}
    assert {"elected primary", "primary became unknown", "check failed"} <= happened
    until(lambda: any("update shop.orders" in row[0] for row in rows(page, "slow")))
    second = deployment.members.primary
    assert second is not None
    second.delay(0.5)  # so that there is something to see
    until(lambda: {"on a connection", "connection check-out"} <= {row[0] for row in rows(page, "operations")})
    assert any("worker-" in row[-1] for row in rows(page, "operations"))
    if PICTURE:
        page.screenshot(Path(PICTURE))
    second.delay(0)
    first.restart()
    until(lambda: sorted(types(page, deployment).values()) == ["RSPrimary", "RSSecondary", "RSSecondary"])
    assert "hunter2" not in page.evaluate("document.documentElement.outerHTML")
    assert "as of" in page.text()
    assert page.console == []


def test_the_page_says_when_it_cannot_be_refreshed_and_goes_on_by_itself() -> None:
    status, away = StatusPage(), False

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if away:
            start_response("503 Service Unavailable", [("Content-Length", "0")])
            return []
        return status(environ, start_response)

    with browser() as page:
        server = WSGIServer(("127.0.0.1", 0), application, log=None)
        server.start()
        page.open(f"http://127.0.0.1:{server.server_port}/")
        until(lambda: "as of" in page.text())
        away = True
        until(lambda: "not refreshed: HTTP 503" in page.text())
        away = False
        until(lambda: "as of" in page.text())
        server.stop()


def test_names_are_shown_as_text_and_run_nothing() -> None:
    """An application's name, and what a server calls itself, come from elsewhere."""
    name = "<img src=x onerror=document.title='run'>"
    with (
        Deployment.standalone() as deployment,
        MongoClient(deployment.uri, appName=name) as client,
        browser() as page,
    ):
        client.admin.command("ping")
        server = WSGIServer(("127.0.0.1", 0), StatusPage(), log=None)
        server.start()
        page.open(f"http://127.0.0.1:{server.server_port}/")
        until(lambda: name in page.text())
        assert page.evaluate("document.title") == "MongoDB clients"
        server.stop()

"""The status page in a browser shows an outage, fits small screens, and works with keyboards and
screen readers.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.pywsgi import WSGIServer
from rich.console import Console
from rich.terminal_theme import MONOKAI

from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.status import StatusPage, worker_states
from gmongo.status import workers as workers_module
from gmongo.status.screen import Screen
from gmongo.testing import Deployment
from tests.support.browser import CHROMIUM, Page, browser
from tests.support.wait import WAIT_LIMIT, until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)"),
]

# The folder in which the tests write new screenshots for the documentation, or None.
PICTURE_FOLDER = os.environ.get("GMONGO_STATUS_PICTURES")
AXE_PATH = os.environ.get("AXE_CORE", "")
SCHEMES = ("light", "dark")

# The program of a worker process.
_WORKER_PROGRAM = """
import sys
import gevent
from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.status import publish
publish(sys.argv[1])
client = MongoClient(sys.argv[2], appName="shop", maxPoolSize=2, heartbeatFrequencyMS=500, slow_operation_ms=1000)
def work(number):
    while True:
        try:
            client.shop.orders.update_one({"_id": number}, {"$inc": {"n": 1}}, upsert=True)
        except PyMongoError:
            pass
        gevent.sleep(0.05)
gevent.joinall([gevent.spawn(work, number) for number in range(4)])
"""

_TERMINAL_HTML = (
    '<meta charset="utf-8"><body style="background:{background};color:{foreground};margin:12px">'
    '<pre style="font:14px/20px DejaVu Sans Mono,monospace;margin:0">{code}</pre>'
)


@contextmanager
def open_page(application: Any, seconds: float = 90) -> Iterator[Page]:
    """Serve a WSGI application, open the page of the application in a browser, and yield the page."""
    with browser(seconds) as page:
        server = WSGIServer(("127.0.0.1", 0), application, log=None)
        server.start()
        try:
            page.open(f"http://127.0.0.1:{server.server_port}/")
            until(lambda: "as of" in page.text())
            yield page
        finally:
            server.stop()


def table_rows(page: Page, table: str) -> list[list[str]]:
    """Return the body rows of a table on the page. A row is the list of the texts of its cells."""
    selector = f"[data-table={table}] tbody tr"
    return page.evaluate(  # type: ignore[no-any-return]
        f"[...document.querySelectorAll({selector!r})].map(row => [...row.cells].map(cell => cell.textContent))"
    )


def expand_all_sections(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")


def wait_for_refreshes(page: Page, count: int = 2) -> None:
    """Wait until the page has refreshed its states more than `count` times."""
    entry_count_js = "performance.getEntriesByType('resource').length"
    count_before = page.evaluate(entry_count_js)
    until(lambda: page.evaluate(entry_count_js) > count_before + count)


def set_appearance(page: Page, scheme: str, width: int) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


def server_types_on_page(page: Page, deployment: Deployment) -> dict[str, str]:
    """Return the server type that the page shows for each member, keyed by the address.

    Servers of other tests, which the page may also show, are omitted.
    """
    addresses = [member.address for member in deployment.members]
    return {row[0]: row[1] for row in table_rows(page, "servers") if row[0] in addresses}


def run_operations(client: MongoClient[Any], document_id: int) -> None:
    """Update and read a document until the greenlet is killed."""
    while True:
        try:
            client.shop.orders.update_one({"_id": document_id}, {"$inc": {"n": 1}}, upsert=True)
            client.shop.orders.find_one({"_id": document_id, "secret": "hunter2"})
        except PyMongoError:
            pass
        gevent.sleep(0.01)


def test_page_shows_loss_and_election_of_primary_under_load() -> None:
    with (
        Deployment.replica_set(members=3) as deployment,
        MongoClient(
            deployment.uri, appName="shop", maxPoolSize=2, slow_operation_ms=200, heartbeatFrequencyMS=500
        ) as client,
        open_page(StatusPage()) as page,
    ):
        workers = [gevent.spawn(run_operations, client, number) for number in range(8)]
        for number, worker in enumerate(workers):
            worker.name = f"worker-{number}"
        try:
            check_outage(page, deployment)
        finally:
            gevent.killall(workers)


def check_outage(page: Page, deployment: Deployment) -> None:
    until(
        lambda: sorted(server_types_on_page(page, deployment).values()) == ["RSPrimary", "RSSecondary", "RSSecondary"]
    )
    expand_all_sections(page)
    old_primary = deployment.members.primary
    assert server_types_on_page(page, deployment)[old_primary.address] == "RSPrimary"
    old_primary.kill()
    until(lambda: ["server unknown", old_primary.address] in [row[:2] for row in table_rows(page, "wrong")])
    until(lambda: sorted(server_types_on_page(page, deployment).values()) == ["RSPrimary", "RSSecondary", "Unknown"])
    until(
        lambda: (
            {"elected primary", "primary became unknown", "check failed"} <= {r[0] for r in table_rows(page, "history")}
        )
    )
    (problem_row,) = [row for row in table_rows(page, "wrong") if row[1] == old_primary.address]
    assert problem_row[3:5] == ["primary became unknown", str(os.getpid())]
    until(lambda: any("update shop.orders" in row[0] for row in table_rows(page, "slow")))
    new_primary = deployment.members.primary
    new_primary.delay(0.5)  # Delay replies, so that the page shows running operations.
    until(lambda: {"on a connection", "connection check-out"} <= {row[0] for row in table_rows(page, "operations")})
    assert any("worker-" in row[-1] for row in table_rows(page, "operations"))
    new_primary.delay(0)
    old_primary.restart()
    until(
        lambda: sorted(server_types_on_page(page, deployment).values()) == ["RSPrimary", "RSSecondary", "RSSecondary"]
    )
    until(lambda: old_primary.address not in [row[1] for row in table_rows(page, "wrong")])
    assert "hunter2" not in page.evaluate("document.documentElement.outerHTML")
    assert page.console_messages == []


@pytest.fixture(scope="module")
def page_of_three_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Open a page about three workers whose replica set has lost its primary under load."""
    directory = tmp_path_factory.mktemp("page") / "states"
    with Deployment.replica_set(members=3) as deployment, pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers_module, "_REPLY_TIMEOUT", WAIT_LIMIT)  # Give slow workers enough time to reply.
        command = [sys.executable, "-c", _WORKER_PROGRAM, str(directory), deployment.uri]
        workers = [subprocess.Popen(command) for _ in range(3)]
        process_ids = {str(worker.pid) for worker in workers}
        try:
            with open_page(StatusPage(directory), 300) as page:
                until(lambda: process_ids <= {row[0] for row in articles(page) if "1 client" in row[1]})
                expand_all_sections(page)
                until(lambda: list(server_types_on_page(page, deployment).values()).count("RSPrimary") == 1)
                primary = deployment.members.primary
                primary.kill()
                until(lambda: process_ids == processes_without_server(page, primary.address))
                if PICTURE_FOLDER:
                    take_screenshots(page, directory, Path(PICTURE_FOLDER))
                expand_all_sections(page)
                until(lambda: len(table_rows(page, "history")) > 10)
                yield page
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def take_screenshots(page: Page, state_directory: Path, picture_folder: Path) -> None:
    """Take screenshots of the page, and of the terminal view with a width of 80 columns."""
    set_appearance(page, "light", 1280)
    page.evaluate("document.querySelectorAll('article > details').forEach((each, at) => { each.open = at === 1; })")
    wait_for_refreshes(page, 20)
    page.screenshot(picture_folder / "status.png")
    console = Console(record=True, file=io.StringIO(), width=80, height=28, force_terminal=True)
    console.print(Screen().visible_part(worker_states(state_directory), console))
    html = console.export_html(inline_styles=True, theme=MONOKAI, code_format=_TERMINAL_HTML)
    with browser() as view_page:
        view_page.open("data:text/html;base64," + b64encode(html.encode()).decode())
        view_page.call("Emulation.setDeviceMetricsOverride", width=740, height=590, deviceScaleFactor=1, mobile=False)
        gevent.sleep(1)
        view_page.screenshot(picture_folder / "terminal.png")


def articles(page: Page) -> list[list[str]]:
    """Return the process ID and the heading of each article on the page."""
    pairs = "[each.dataset.process, each.querySelector('summary').innerText]"
    return page.evaluate(f"[...document.querySelectorAll('article')].map(each => {pairs})")  # type: ignore[no-any-return]


def processes_without_server(page: Page, address: str) -> set[str]:
    """Return the IDs of the processes whose connections to a server were refused.

    A process that reports another error, such as a reset connection, is omitted.
    """
    matches = [
        row for row in table_rows(page, "wrong") if row[:2] == ["server unknown", address] and "refused" in row[6]
    ]
    return set(matches[0][4].split(", ")) if matches else set()


def test_page_shows_lost_primary_of_three_workers_as_one_problem(page_of_three_workers: Page) -> None:
    page = page_of_three_workers
    own_process = str(os.getpid())  # The page may also show clients of other tests in this process.
    (problem_row,) = [row for row in table_rows(page, "wrong") if row[0] == "server unknown" and row[4] != own_process]
    assert problem_row[3] == "primary became unknown"
    assert "server unknown" in page.evaluate("document.getElementById('verdict').innerText")
    tops_js = "[...document.querySelectorAll('#verdict, [data-table=wrong], article')].map(each => each.offsetTop)"
    tops = page.evaluate(tops_js)
    assert tops == sorted(tops)
    assert page.console_messages == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_page_fits_the_width_of_a_phone(page_of_three_workers: Page, scheme: str) -> None:
    set_appearance(page_of_three_workers, scheme, 390)
    width_js = "document.documentElement.scrollWidth"
    assert page_of_three_workers.evaluate(width_js) == 390
    overflow_js = "[...document.querySelectorAll('.table')].filter(each => each.scrollWidth > each.clientWidth).length"
    assert page_of_three_workers.evaluate(overflow_js) == 0


@pytest.mark.skipif(not Path(AXE_PATH).is_file(), reason="AXE_CORE names no axe.min.js (tox -e page installs one)")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_no_accessibility_violation_on_page(page_of_three_workers: Page, scheme: str, width: int) -> None:
    set_appearance(page_of_three_workers, scheme, width)
    page_of_three_workers.evaluate(Path(AXE_PATH).read_text("utf-8") + "; true")
    fields_js = "each => [each.id, each.nodes.map(node => node.html.slice(0, 200))]"
    result = page_of_three_workers.evaluate(
        f"axe.run().then(found => [found.violations.map({fields_js}), found.passes.map(each => each.id)])"
    )
    assert result[0] == []
    assert {"color-contrast", "document-title", "scrollable-region-focusable"} & {*result[1]}


def test_refresh_of_page_keeps_selection_focus_and_open_sections(page_of_three_workers: Page) -> None:
    page = page_of_three_workers
    page.evaluate("""
        const cells = [...document.querySelectorAll('[data-table=wrong] td')];
        const error = cells.find(cell => /refused/.test(cell.innerText));
        const text = document.createTreeWalker(error, NodeFilter.SHOW_TEXT).nextNode();  // A mouse selects text nodes.
        getSelection().setBaseAndExtent(text, 1, text, text.length);
        document.querySelector('article summary').focus();
        document.querySelector('article:last-child > details').open = false;
    """)
    selected = page.evaluate("getSelection().toString()")
    assert "refused" in selected
    wait_for_refreshes(page)
    assert page.evaluate("getSelection().toString()") == selected
    assert page.evaluate("document.activeElement === document.querySelector('article summary')")
    *others, last_is_open = page.evaluate("[...document.querySelectorAll('article > details')].map(each => each.open)")
    assert all(others)
    assert not last_is_open


def test_keyboard_expands_a_process(page_of_three_workers: Page) -> None:
    page = page_of_three_workers
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = false; })")
    until(lambda: page.evaluate("!document.querySelector('article > details[open]')"))
    page.evaluate("getSelection().collapse(document.querySelector('h1'), 0); document.activeElement.blur()")
    press(page, "Tab", 9)
    assert page.evaluate("document.activeElement.matches('article summary')")
    press(page, "Enter", 13, "\r")
    until(lambda: page.evaluate("document.activeElement.parentElement.open"))
    until(
        lambda: page.evaluate("!!document.activeElement.parentElement.querySelector('[data-table=servers] tbody tr')")
    )


def press(page: Page, key: str, code: int, text: str = "") -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)


class PageOfOneClient(StatusPage):
    """Status page that shows only one client of this process. The page omits the clients of other
    tests.

    :param client: the client that the page shows.
    """

    def __init__(self, client: MongoClient[Any]) -> None:
        super().__init__()
        self._number = client._executor.number

    def states(self) -> list[dict[str, Any]]:
        (state,) = super().states()
        return [{**state, "clients": [each for each in state["clients"] if each["number"] == self._number]}]


def test_live_region_of_page_announces_only_changes() -> None:
    with (
        Deployment.standalone() as deployment,
        MongoClient(deployment.uri) as client,
        open_page(PageOfOneClient(client)) as page,
    ):
        client.admin.command("ping")
        wait_for_refreshes(page)
        page.evaluate("""
            window.announcements = 0;
            for (const each of document.querySelectorAll('[role=status], [role=alert], [aria-live]'))
              new MutationObserver(() => { window.announcements += 1; }).observe(
                each, {subtree: true, childList: true, characterData: true});
        """)
        wait_for_refreshes(page)
        assert page.evaluate("window.announcements") == 0
        deployment.members[0].kill()
        until(lambda: page.evaluate("window.announcements") == 1)
        assert "server unknown" in page.evaluate("document.querySelector('[role=status]').innerText")


def test_charts_of_page_show_recorded_rates() -> None:
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as client, open_page(StatusPage()) as page:
        for _ in range(2):
            for _ in range(200):
                client.shop.orders.find_one()
            wait_for_refreshes(page, 1)
        captions = page.evaluate("[...document.querySelectorAll('figcaption')].map(each => each.innerText)")
        assert [caption.split(":")[0] for caption in captions] == [
            "Requests per second",
            "Waiting for a connection",
            "Failed attempts per second",
        ]
        assert int(captions[0].split(": ")[2].rstrip(")")) > 0
        points = page.evaluate("[...document.querySelectorAll('polyline')].map(each => each.getAttribute('points'))")
        assert all(len(each.split()) >= 2 for each in points)


def test_page_reports_failed_refresh_and_recovers() -> None:
    status_page, is_unavailable = StatusPage(), False

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if is_unavailable:
            start_response("503 Service Unavailable", [("Content-Length", "0")])
            return []
        return status_page(environ, start_response)

    with open_page(application) as page:
        is_unavailable = True
        until(lambda: "not refreshed: HTTP 503" in page.text())
        is_unavailable = False
        until(lambda: "not refreshed" not in page.text())


def test_page_displays_html_in_application_name_as_text() -> None:
    name = "<img src=x onerror=document.title='run'>"
    with (
        Deployment.standalone() as deployment,
        MongoClient(deployment.uri, appName=name) as client,
        open_page(StatusPage()) as page,
    ):
        client.admin.command("ping")
        until(lambda: name in page.text())
        assert page.evaluate("document.title") == "MongoDB clients"

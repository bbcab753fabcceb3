"""The page in a real browser: while a replica set loses its primary under load, on a phone, by keyboard, and for those
who hear it read out.
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
from gmongo.status import workers as states_of_workers
from gmongo.status.screen import Screen
from gmongo.testing import Deployment
from tests.support.browser import CHROMIUM, Page, browser
from tests.support.wait import PATIENCE, until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here (apt-get install chromium)"),
]

# The folder for the pictures of the documentation, if they are to be taken again.
PICTURES = os.environ.get("GMONGO_STATUS_PICTURES")
AXE = os.environ.get("AXE_CORE", "")
SCHEMES = ("light", "dark")

# What a worker of an application does, until it is killed.
_WORKER = """
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

_TERMINAL = (
    '<meta charset="utf-8"><body style="background:{background};color:{foreground};margin:12px">'
    '<pre style="font:14px/20px DejaVu Sans Mono,monospace;margin:0">{code}</pre>'
)

# The least contrast of a text with what is behind it, and the text.
_CONTRAST = """
(() => {
  const light = text => {
    const [r, g, b] = text.match(/[0-9.]+/g).map(Number).map(each => each / 255)
      .map(each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const found = [];
  for (const each of document.body.querySelectorAll("*")) {
    for (const style of [getComputedStyle(each), getComputedStyle(each, "::before")]) {
      const ink = light(style.color);
      found.push([(Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05), each.outerHTML.slice(0, 80)]);
    }
  }
  return found.sort((one, other) => one[0] - other[0])[0];
})()
"""


@contextmanager
def shown(application: Any, seconds: float = 90) -> Iterator[Page]:
    """A page in a browser that shows an application."""
    with browser(seconds) as page:
        server = WSGIServer(("127.0.0.1", 0), application, log=None)
        server.start()
        try:
            page.open(f"http://127.0.0.1:{server.server_port}/")
            until(lambda: "as of" in page.text())
            yield page
        finally:
            server.stop()


def rows(page: Page, table: str) -> list[list[str]]:
    """The cells of a table."""
    selector = f"[data-table={table}] tbody tr"
    return page.evaluate(  # type: ignore[no-any-return]
        f"[...document.querySelectorAll({selector!r})].map(row => [...row.cells].map(cell => cell.textContent))"
    )


def open_all(page: Page) -> None:
    """Unfold everything; what is inside is there a moment later."""
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")


def wait_for_refreshes(page: Page, number: int = 2) -> None:
    """Until the page has shown so many more answers."""
    count = "performance.getEntriesByType('resource').length"
    seen = page.evaluate(count)
    until(lambda: page.evaluate(count) > seen + number)


def look_like(page: Page, scheme: str, width: int) -> None:
    """Have the browser show a light or dark page of a width."""
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


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
        shown(StatusPage()) as page,
    ):
        workers = [gevent.spawn(work, client, number) for number in range(8)]
        for number, worker in enumerate(workers):
            worker.name = f"worker-{number}"
        try:
            watch(page, deployment)
        finally:
            gevent.killall(workers)


def watch(page: Page, deployment: Deployment) -> None:
    until(lambda: sorted(types(page, deployment).values()) == ["RSPrimary", "RSSecondary", "RSSecondary"])
    open_all(page)
    first = deployment.members.primary
    assert first is not None
    assert types(page, deployment)[first.address] == "RSPrimary"
    first.kill()
    until(lambda: ["server unknown", first.address] in [row[:2] for row in rows(page, "wrong")])
    until(lambda: sorted(types(page, deployment).values()) == ["RSPrimary", "RSSecondary", "Unknown"])
    until(
        lambda: {"elected primary", "primary became unknown", "check failed"} <= {r[0] for r in rows(page, "history")}
    )
    (wrong,) = [row for row in rows(page, "wrong") if row[1] == first.address]
    assert wrong[3:5] == ["primary became unknown", str(os.getpid())]
    until(lambda: any("update shop.orders" in row[0] for row in rows(page, "slow")))
    second = deployment.members.primary
    assert second is not None
    second.delay(0.5)  # so that there is something to see
    until(lambda: {"on a connection", "connection check-out"} <= {row[0] for row in rows(page, "operations")})
    assert any("worker-" in row[-1] for row in rows(page, "operations"))
    second.delay(0)
    first.restart()
    until(lambda: sorted(types(page, deployment).values()) == ["RSPrimary", "RSSecondary", "RSSecondary"])
    until(lambda: first.address not in [row[1] for row in rows(page, "wrong")])
    assert "hunter2" not in page.evaluate("document.documentElement.outerHTML")
    assert page.console == []


@pytest.fixture(scope="module")
def three_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of three workers, whose replica set has lost its primary under load."""
    directory = tmp_path_factory.mktemp("page") / "states"
    with Deployment.replica_set(members=3) as deployment, pytest.MonkeyPatch.context() as patch:
        patch.setattr(states_of_workers, "_PATIENCE", PATIENCE)  # what it shows goes when it is not heard
        command = [sys.executable, "-c", _WORKER, str(directory), deployment.uri]
        workers = [subprocess.Popen(command) for _ in range(3)]
        names = {str(worker.pid) for worker in workers}
        try:
            with shown(StatusPage(directory), 300) as page:
                until(lambda: names <= {row[0] for row in articles(page) if "1 client" in row[1]})
                open_all(page)
                until(lambda: list(types(page, deployment).values()).count("RSPrimary") == 1)
                primary = deployment.members.primary
                assert primary is not None
                primary.kill()
                until(lambda: names == concerned(page, primary.address))
                if PICTURES:
                    take_pictures(page, directory, Path(PICTURES))
                open_all(page)
                until(lambda: len(rows(page, "history")) > 10)
                yield page
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def take_pictures(page: Page, directory: Path, folder: Path) -> None:
    """The page, and a terminal at 80 columns."""
    look_like(page, "light", 1280)
    page.evaluate("document.querySelectorAll('article > details').forEach((each, at) => { each.open = at === 1; })")
    wait_for_refreshes(page, 20)
    page.screenshot(folder / "status.png")
    console = Console(record=True, file=io.StringIO(), width=80, height=28, force_terminal=True)
    console.print(Screen().shown(worker_states(directory), console))
    text = console.export_html(inline_styles=True, theme=MONOKAI, code_format=_TERMINAL)
    with browser() as other:
        other.open("data:text/html;base64," + b64encode(text.encode()).decode())
        other.call("Emulation.setDeviceMetricsOverride", width=740, height=590, deviceScaleFactor=1, mobile=False)
        gevent.sleep(1)
        other.screenshot(folder / "terminal.png")


def articles(page: Page) -> list[list[str]]:
    """The number of each process and its heading."""
    pairs = "[each.dataset.process, each.querySelector('summary').innerText]"
    return page.evaluate(f"[...document.querySelectorAll('article')].map(each => {pairs})")  # type: ignore[no-any-return]


def concerned(page: Page, server: str) -> set[str]:
    """The processes for which a server is unknown since it refuses connections: the last of its errors.

    Before, it resets those that it has, and processes that have seen the one are told apart from those with the other.
    """
    found = [row for row in rows(page, "wrong") if row[:2] == ["server unknown", server] and "refused" in row[6]]
    return set(found[0][4].split(", ")) if found else set()


def test_three_workers_that_lose_their_primary_are_one_thing_that_is_wrong(three_workers: Page) -> None:
    page = three_workers
    here = str(os.getpid())  # clients that other tests have left behind are on the page, too
    (wrong,) = [row for row in rows(page, "wrong") if row[0] == "server unknown" and row[4] != here]
    assert wrong[3] == "primary became unknown"
    assert "server unknown" in page.evaluate("document.getElementById('verdict').innerText")
    places = "[...document.querySelectorAll('#verdict, [data-table=wrong], article')].map(each => each.offsetTop)"
    tops = page.evaluate(places)
    assert tops == sorted(tops)
    assert page.console == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_can_be_read_on_a_phone(three_workers: Page, scheme: str) -> None:
    look_like(three_workers, scheme, 390)
    width = "document.documentElement.scrollWidth"
    assert three_workers.evaluate(width) == 390
    wider = "[...document.querySelectorAll('.table')].filter(each => each.scrollWidth > each.clientWidth).length"
    assert three_workers.evaluate(wider) == 0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [390, 1280])
def test_the_contrast_is_enough(three_workers: Page, scheme: str, width: int) -> None:
    look_like(three_workers, scheme, width)
    ratio, where = three_workers.evaluate(_CONTRAST)
    assert ratio >= 4.5, where
    dark = "getComputedStyle(document.body).backgroundColor"
    assert (three_workers.evaluate(dark) == "rgb(255, 255, 255)") is (scheme == "light")


def test_tables_have_captions_and_heads(three_workers: Page) -> None:
    count = "document.querySelectorAll({!r}).length"
    tables = three_workers.evaluate(count.format("table"))
    assert tables > 10
    assert three_workers.evaluate(count.format("table > caption:not(:empty)")) == tables
    assert three_workers.evaluate(count.format("th:not([scope])")) == 0
    assert three_workers.evaluate(count.format("tbody tr:not(:has(> th[scope=row]:first-child))")) == 0


@pytest.mark.skipif(not Path(AXE).is_file(), reason="AXE_CORE does not name an axe.min.js (tox -e page installs one)")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing(three_workers: Page, scheme: str, width: int) -> None:
    look_like(three_workers, scheme, width)
    three_workers.evaluate(Path(AXE).read_text("utf-8") + "; true")
    found = "each => [each.id, each.nodes.map(node => node.html.slice(0, 200))]"
    result = three_workers.evaluate(
        f"axe.run().then(found => [found.violations.map({found}), found.passes.map(each => each.id)])"
    )
    assert result[0] == []
    assert {"color-contrast", "document-title", "scrollable-region-focusable"} & {*result[1]}


def test_what_is_selected_unfolded_and_focused_stays(three_workers: Page) -> None:
    page = three_workers
    page.evaluate("""
        const cells = [...document.querySelectorAll('[data-table=wrong] td')];
        const error = cells.find(cell => /refused/.test(cell.innerText));
        const text = document.createTreeWalker(error, NodeFilter.SHOW_TEXT).nextNode();  // as a mouse does
        getSelection().setBaseAndExtent(text, 1, text, text.length);
        document.querySelector('article summary').focus();
        document.querySelector('article:last-child > details').open = false;
    """)
    chosen = page.evaluate("getSelection().toString()")
    assert "refused" in chosen
    wait_for_refreshes(page)
    assert page.evaluate("getSelection().toString()") == chosen
    assert page.evaluate("document.activeElement === document.querySelector('article summary')")
    *others, changed = page.evaluate("[...document.querySelectorAll('article > details')].map(each => each.open)")
    assert all(others)
    assert not changed


def test_processes_are_unfolded_by_keyboard(three_workers: Page) -> None:
    page = three_workers
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
    """Press a key."""
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)


class PageOfOne(StatusPage):
    """A page of one client, without those that other tests have left behind, which may go at any time.

    :param client: the one.
    """

    def __init__(self, client: MongoClient[Any]) -> None:
        super().__init__()
        self._number = client._executor.number

    def states(self) -> list[dict[str, Any]]:
        (state,) = super().states()
        return [{**state, "clients": [each for each in state["clients"] if each["number"] == self._number]}]


def test_a_reader_is_told_only_what_has_changed() -> None:
    with (
        Deployment.standalone() as deployment,
        MongoClient(deployment.uri) as client,
        shown(PageOfOne(client)) as page,
    ):
        client.admin.command("ping")
        wait_for_refreshes(page)
        page.evaluate("""
            window.told = 0;
            for (const each of document.querySelectorAll('[role=status], [role=alert], [aria-live]'))
              new MutationObserver(() => { window.told += 1; }).observe(
                each, {subtree: true, childList: true, characterData: true});
        """)
        wait_for_refreshes(page)
        assert page.evaluate("window.told") == 0
        deployment.members[0].kill()
        until(lambda: page.evaluate("window.told") == 1)
        assert "server unknown" in page.evaluate("document.querySelector('[role=status]').innerText")


def test_the_trend_is_drawn_of_what_was_seen() -> None:
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as client, shown(StatusPage()) as page:
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
        assert int(captions[0].split("at most ")[1].rstrip(")")) > 0
        points = page.evaluate("[...document.querySelectorAll('polyline')].map(each => each.getAttribute('points'))")
        assert all(len(each.split()) >= 2 for each in points)


def test_the_page_says_when_it_cannot_be_refreshed_and_goes_on_by_itself() -> None:
    status, away = StatusPage(), False

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if away:
            start_response("503 Service Unavailable", [("Content-Length", "0")])
            return []
        return status(environ, start_response)

    with shown(application) as page:
        away = True
        until(lambda: "not refreshed: HTTP 503" in page.text())
        away = False
        until(lambda: "not refreshed" not in page.text())


def test_names_are_shown_as_text_and_run_nothing() -> None:
    """An application's name, and what a server calls itself, come from elsewhere."""
    name = "<img src=x onerror=document.title='run'>"
    with (
        Deployment.standalone() as deployment,
        MongoClient(deployment.uri, appName=name) as client,
        shown(StatusPage()) as page,
    ):
        client.admin.command("ping")
        until(lambda: name in page.text())
        assert page.evaluate("document.title") == "MongoDB clients"

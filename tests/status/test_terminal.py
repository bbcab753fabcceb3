"""What a terminal shows of the states of processes: what is wrong, every cell, whole errors; and the keys."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gevent
import pytest

pytest.importorskip("rich")

from gevent.os import make_nonblocking, nb_read
from rich.console import Console

from gmongo.status import publish
from gmongo.status.screen import Screen
from gmongo.status.terminal import Tables
from gmongo.status.views import EVENTS, OPERATIONS, POOLS, SERVERS, VIEWS, Column, Order, View, duration
from gmongo.status.views import SLOW as SLOW_ONES
from tests.status.states import EVENT, LOST, OPERATION, POOL, SERVER, SLOW, client, silent, state
from tests.support.wait import eventually

LOST_TOO = {**LOST, "address": "h:2"}
LONG = "localhost:27017: " + " ".join(f"reason {number}" for number in range(30))


def lines(states: Sequence[dict[str, Any]], width: int = 200) -> list[str]:
    """What is printed."""
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(Tables(list(states)))
    return [line.rstrip() for line in text.getvalue().splitlines()]


def cells(view: View, *states: dict[str, Any], width: int = 200) -> list[list[str]]:
    """The cells of all rows."""
    return [[each.shown(row) for each in view.shown(width)] for row in view.rows(list(states))]


def test_a_server_is_one_row_for_all_clients() -> None:
    slower = {**SERVER, "roundTripMS": 3.0}
    shown = cells(SERVERS, state(client()), state(client(servers=[slower, LOST_TOO]), process=13))
    assert shown == [["h:1", "Mongos", "3.0 ms", "2", "8", ""], ["h:2", "Unknown", "", "1", "0", "refused"]]
    shown = cells(SERVERS, state(client()), state(client(servers=[LOST]), process=13))
    assert shown == [["h:1", "1 Mongos, 1 Unknown", "1.2 ms", "2", "4", "refused"]]


def test_a_pool() -> None:
    pool = {**POOL, "oldestWaitMS": 1500.0}
    states = state(client(servers=[{**SERVER, "pool": pool}, LOST_TOO]))
    whole = ["12", "7 shop", "h:1", "ready", "1/9", "2", "3", "4", "1.5 s", "7", "11", "99.5"]
    assert cells(POOLS, states) == [whole]
    assert cells(POOLS, states, width=80) == [[*whole[:5], *whole[7:9]]]
    unlimited = {**POOL, "maxPoolSize": None, "oldestWaitMS": None}
    (shown,) = cells(POOLS, state(client(application="", servers=[{**SERVER, "pool": unlimited}])))
    assert (shown[1], shown[4], shown[8]) == ("7", "1/∞", "")


def test_an_operation_a_slow_one_and_an_event() -> None:
    states = state(client(operations=[OPERATION], slow=[{**SLOW, "error": "NetworkTimeout"}], history=[EVENT]))
    assert cells(OPERATIONS, states) == [["12", "20.0 ms", "waiting", "find shop.orders", "h:1", "g1"]]
    spent = "check-out 200.0 ms, server 98.0 ms"  # what is less than a hundredth is left out
    slow = ["12", "1.0 s", "300.0 ms", "find shop.orders", "h:1", "1", spent, "NetworkTimeout"]
    assert cells(SLOW_ONES, states) == [slow]
    for driver, is_shown in ((3.0, False), (3.02, True)):
        ((*_, shown, _),) = cells(SLOW_ONES, state(client(slow=[{**SLOW, "driverMS": driver}])))
        assert (shown == f"{spent}, driver 3.0 ms") is is_shown
    assert cells(EVENTS, states) == [["12", "61.0 s", "elected primary", "2", "h:1", "gone"]]


@pytest.mark.parametrize(
    "milliseconds", [(0.26, "0.3 ms"), (999.9, "999.9 ms"), (1000, "1.0 s"), (119_999, "120.0 s"), (180_000, "3 min")]
)
def test_times(milliseconds: tuple[float, str]) -> None:
    assert duration(milliseconds[0]) == milliseconds[1]


def test_no_process() -> None:
    assert lines([])[0] == "no process publishes its state here"
    assert not any("wrong" in line.lower() for line in lines([]))


def test_what_is_wrong_comes_first() -> None:
    history = [{**EVENT, "what": "became Unknown", "sinceMS": 65_000.0}]
    shown = lines([state(client(servers=[LOST], history=history)), silent("13")])
    assert shown[:8] == [
        "2 processes, 1 client: 0 of 0 connections in use, 0 waiting, 7 errors",
        "Wrong: 2",
        "! does not answer",
        "    in process 13",
        "    does not answer within 1 s",
        "! server unknown h:1 for 65.0 s",
        "    since: became Unknown; in process 12",
        "    refused",
    ]
    assert "Nothing is wrong." in lines([state(client())])[1]


@pytest.mark.parametrize("width", [80, 100, 120, 200, 300])
def test_nothing_is_cut_off_at_any_width(width: int) -> None:
    """Whatever does not fit in a line goes on in the next one."""
    lost = {**LOST, "error": LONG}
    slow = {**SLOW, "error": "NetworkTimeout"}
    one = client(servers=[SERVER, lost], operations=[OPERATION], slow=[slow], history=[{**EVENT, "error": LONG}])
    states = [state(one, process=1_234_567)]
    shown = lines(states, width)
    assert max(map(len, shown)) <= width
    text = " ".join(" ".join(shown).split())
    for view in VIEWS:
        for word in {word for row in cells(view, *states, width=width) for cell in row for word in cell.split()}:
            assert word in text, (view.title, word)
    wrong = " ".join(" ".join(shown[: shown.index("")]).split())
    assert LONG in wrong  # in one piece, so that it can be read and copied


def test_of_many_the_first_twenty_are_printed() -> None:
    shown = lines([state(client(operations=[OPERATION] * 25, history=[EVENT] * 25))])
    assert "Operations: 25" in shown
    assert [sum(what in line for line in shown) for what in (" waiting ", "elected primary")] == [20 + 1, 20]


# The screen


def screen(*keys: str, states: Sequence[dict[str, Any]], width: int = 80, height: int = 24) -> list[str]:
    """What a terminal shows after some keys."""
    text = io.StringIO()
    looked_at = Screen()
    console = Console(file=text, width=width, height=height, color_system=None)
    console.print(looked_at.shown(list(states), console))
    for key in keys:
        looked_at.press(key, width)
        text.truncate(0)
        console.print(looked_at.shown(list(states), console))
    return [line.strip("\x00").rstrip() for line in text.getvalue().splitlines()]


MANY = [
    state(client(operations=[{**OPERATION, "sinceMS": float(each), "greenlet": f"g{each}"}]), process=each)
    for each in range(1, 40)
]


def column(shown: list[str], name: str, number: int) -> list[str]:
    """The words with a number in the lines below a line that begins with `name`."""
    head = next(index for index, line in enumerate(shown) if line.strip().startswith(name))
    return [line.split()[number] for line in shown[head + 1 :] if line]


def test_it_fits_the_terminal() -> None:
    for width, height in ((80, 24), (200, 50), (40, 5)):
        shown = screen(states=MANY, width=width, height=height)
        assert len(shown) <= height
        assert max(map(len, shown)) <= width
        assert shown[0].startswith("1 pools")


def test_keys_choose_what_is_shown() -> None:
    for key, title in {
        "1": "Pools: 39",
        "2": "Operations: 39",
        "3": "Slow operations: none",
        "4": "Failed checks",
    }.items():
        assert any(line.startswith(title) for line in screen(key, states=MANY))
    assert screen("x", states=MANY) == screen(states=MANY)


def test_keys_sort() -> None:
    assert column(screen("2", states=MANY), "process", -1)[0] == "g39"
    assert column(screen("2", "r", states=MANY), "process", -1)[0] == "g1"
    by_process = screen("2", *"sssss", states=MANY)  # past the last column, and begin again
    assert "process↑" in "".join(by_process)
    assert column(by_process, "process", 0)[0] == "1"
    assert column(screen("2", *"sssss", "r", states=MANY), "process", 0)[0] == "39"


def test_keys_scroll_to_the_end_and_no_further() -> None:
    assert column(screen("2", states=MANY), "process", -1)[-1] == "g21"
    assert "g20" in " ".join(screen("2", "j", states=MANY))
    end = screen("2", *["\x1b[6~"] * 9, states=MANY)
    assert end[-1].endswith("g1")
    assert "g2 " not in screen("2", *["\x1b[6~"] * 9, "k", states=MANY)[-1]
    assert screen("2", *["\x1b[6~"] * 9, *["\x1b[5~"] * 9, states=MANY) == screen("2", states=MANY)
    assert screen("2", *"jj", "1", states=MANY) == screen(states=MANY)
    assert screen("2", *"jjjj", states=MANY[:3]) == screen("2", states=MANY[:3]), "all of a short page is seen"


def test_it_can_be_paused() -> None:
    assert screen("p", states=MANY)[0].startswith("PAUSED 1 pools")
    assert screen("p", "p", states=MANY)[0].startswith("1 pools")


@pytest.mark.long
def test_in_a_terminal(tmp_path: Path) -> None:
    """A program of its own: keys arrive, several at once too, `q` ends it, and the terminal is as it was."""
    publish(tmp_path)
    eventually(lambda: list(tmp_path.glob("*.sock")))
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    command = [sys.executable, "-m", "gmongo.status", str(tmp_path)]
    environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    make_nonblocking(ours)
    try:
        with gevent.Timeout(60):
            read_until(ours, b"Pools")
            os.write(ours, b"4\x1b[B2")
            read_until(ours, b"Operations")
            os.write(ours, b"\x1b[Bq")  # an arrow and a letter that arrive together
            while process.poll() is None:
                gevent.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def read_until(fd: int, text: bytes) -> None:
    found = b""
    while text not in found:
        found += nb_read(fd, 4096)


@pytest.mark.parametrize(("width", "all_of_them"), [(119, False), (120, True), (500, True)])
def test_all_columns_are_shown_where_there_is_room(width: int, all_of_them: bool) -> None:
    narrow, wide = Column("a", Mock()), Column("b", Mock(), None, True)
    table = View("x", lambda states: iter(()), (narrow, wide), Order("a"))
    assert table.shown(width) == ([narrow, wide] if all_of_them else [narrow])


def test_a_screen_is_shown_from_its_beginning() -> None:
    first = screen(states=MANY, height=6)
    assert screen("k", states=MANY, height=6) == first
    assert screen("j", states=MANY, height=6)[1] == first[2]

"""The terminal view shows problems, tables and error texts, and reacts to keys."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("rich")

from rich.console import Console

from gmongo.status.screen import Screen
from gmongo.status.terminal import EVENTS, OPERATIONS, POOLS, SERVERS, SLOW_OPERATIONS, VIEWS, View, duration, overview
from tests.status.states import (
    EVENT,
    OPERATION,
    POOL,
    RETRIES,
    SERVER,
    SLOW_ENTRY,
    UNKNOWN_SERVER,
    client,
    silent_state,
    state,
)

SECOND_UNKNOWN_SERVER = {**UNKNOWN_SERVER, "address": "h:2"}
LONG_ERROR = "localhost:27017: " + " ".join(f"reason {number}" for number in range(30))


def printed_lines(states: Sequence[dict[str, Any]], width: int = 200, colors: Any = None) -> list[str]:
    """Return the lines that the terminal command prints about the given states."""
    text = io.StringIO()
    Console(file=text, width=width, color_system=colors).print(overview(list(states), width))
    return [line.rstrip() for line in text.getvalue().splitlines()]


def view_cells(view: View, *states: dict[str, Any], width: int = 200) -> list[list[str]]:
    """Return the cell texts of each row that a view shows for the given states."""
    return [[each.cell_text(row) for each in view.visible_columns(width)] for row in view.rows(list(states))]


def test_servers_view_has_one_row_per_server() -> None:
    slower = {**SERVER, "roundTripMS": 3.0}
    shown = view_cells(SERVERS, state(client()), state(client(servers=[slower, SECOND_UNKNOWN_SERVER]), process=13))
    assert shown == [["h:1", "Mongos", "3.0 ms", "2", "8", ""], ["h:2", "Unknown", "", "1", "0", "refused"]]
    shown = view_cells(SERVERS, state(client()), state(client(servers=[UNKNOWN_SERVER]), process=13))
    assert shown == [["h:1", "1 Mongos, 1 Unknown", "1.2 ms", "2", "4", "refused"]]


def test_pools_view_omits_columns_on_narrow_terminal() -> None:
    pool = {**POOL, "oldestWaitMS": 1500.0}
    states = state(client(servers=[{**SERVER, "pool": pool}, SECOND_UNKNOWN_SERVER]))
    all_cells = ["12", "7 shop", "h:1", "ready", "1/9", "2", "3", "4", "1.5 s", "7", "11", "99.5"]
    assert view_cells(POOLS, states, width=120) == [all_cells]
    assert view_cells(POOLS, states, width=119) == [[*all_cells[:5], *all_cells[7:9]]]
    unlimited = {**POOL, "maxPoolSize": None, "oldestWaitMS": None}
    (shown,) = view_cells(POOLS, state(client(application="", servers=[{**SERVER, "pool": unlimited}])))
    assert (shown[1], shown[4], shown[8]) == ("7", "1/∞", "")


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.title)
def test_view_has_rows_of_all_processes_and_clients(view: View) -> None:
    full_client = client(
        servers=[SERVER, {**SERVER, "address": "h:2"}],
        retries={**client()["retries"], "tokens": 1000.0},
        **{name: [entry] * 2 for name, entry in (("operations", OPERATION), ("slow", SLOW_ENTRY), ("history", EVENT))},
    )
    shown = view_cells(view, state(full_client, full_client), state(full_client, process=13))
    if view is SERVERS:
        assert [(row[0], *row[3:5]) for row in shown] == [("h:1", "3", "12"), ("h:2", "3", "12")]
    else:
        assert [row[0] for row in shown] == ["12"] * 4 + ["13"] * 2
        assert shown[0][-1] == {POOLS: "1000", SLOW_OPERATIONS: ""}.get(view, shown[0][-1])


def test_views_show_operation_slow_operation_and_event() -> None:
    states = state(client(operations=[OPERATION], slow=[{**SLOW_ENTRY, "error": "NetworkTimeout"}], history=[EVENT]))
    assert view_cells(OPERATIONS, states) == [["12", "20.0 ms", "waiting", "find shop.orders", "h:1", "g1"]]
    # The view omits the network time, which is below 1 % of the duration.
    duration_parts = "check-out 200.0 ms, server 98.0 ms"
    slow = ["12", "1.0 s", "300.0 ms", "find shop.orders", "h:1", "1", duration_parts, "NetworkTimeout"]
    assert view_cells(SLOW_OPERATIONS, states) == [slow]
    for driver_ms, has_driver_time in ((3.0, False), (3.02, True)):
        ((*_, shown, _),) = view_cells(SLOW_OPERATIONS, state(client(slow=[{**SLOW_ENTRY, "driverMS": driver_ms}])))
        assert (shown == f"{duration_parts}, driver 3.0 ms") is has_driver_time
    assert view_cells(EVENTS, states) == [["12", "61.0 s", "elected primary", "2", "h:1", "gone"]]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0.26, "0.3 ms"), (999.9, "999.9 ms"), (1000, "1.0 s"), (119_999, "120.0 s"), (120e3, "2 min"), (180e3, "3 min")],
)
def test_duration_is_formatted_with_unit(milliseconds: float, text: str) -> None:
    assert duration(milliseconds) == text


def test_empty_directory_shows_no_process() -> None:
    assert printed_lines([])[0] == "no process publishes its state in this directory"
    assert not any("problem" in line.lower() for line in printed_lines([]))


def test_terminal_command_prints_problems_first() -> None:
    history = [{**EVENT, "what": "became Unknown", "sinceMS": 65_000.0}]
    lost = client(servers=[UNKNOWN_SERVER], history=history)
    shown = printed_lines([state(lost, lost), silent_state("13")])
    assert shown[:8] == [
        "2 processes, 2 clients: 0 of 0 connections in use, 0 waiting, 14 errors",
        "Problems: 2",
        "! does not answer",
        "    in process 13",
        "    does not answer within 1 s",
        "! server unknown h:1 for 65.0 s",
        "    since: became Unknown; 2 times in process 12",
        "    refused",
    ]
    assert "No problems." in printed_lines([state(client())])[1]
    shown = printed_lines([state(client(retries={**RETRIES, "tokens": 0.5}))])  # a problem without an error
    assert shown[2:5] == ["! no tokens for retries", "    in process 12", ""] and shown[5]


def test_problems_and_bad_cells_are_coloured() -> None:
    lost = {**UNKNOWN_SERVER, "address": "h:2", "pool": {**POOL, "waiting": 0}}
    history = [{**EVENT, "what": "lost", "server": "h:2", "sinceMS": 500.0}]
    states = [state(client(servers=[{**SERVER, "pool": {**POOL, "state": "paused"}}, lost], history=history))]
    lines = printed_lines(states)
    assert lines[0] == "1 process, 1 client: 2 of 12 connections in use, 4 waiting, 7 errors"
    assert lines[lines.index("Servers: 2") + 1 :][:3] == [
        "server↑  type     round trip  clients  waiting  error",
        "h:1      Mongos       1.2 ms        1        4",
        "h:2      Unknown                    1        0  refused",
    ]
    end = "\x1b[0m"
    text = "\n".join(printed_lines(states, colors="standard"))
    assert f"\x1b[1;31mProblems: 1{end}\n\x1b[31m! server unknown{end} \x1b[1mh:2{end} for 500.0 ms\n" in text
    for cell in ("31mUnknown", "31mrefused", "31m      4", "33mpaused", "1mOperations: none", "2mserver↑"):
        assert f"\x1b[{cell}{end}" in text
    assert f"1        0  \x1b[31mrefused{end}" in text and "\x1b[31mMongos" not in text
    assert printed_lines([state(client())], colors="standard")[1] == f"\x1b[32mNo problems.{end}"


def test_overview_shows_at_most_20_rows_of_a_table() -> None:
    servers = [{**SERVER, "address": f"server-{number}:1"} for number in range(25)]
    lines = printed_lines([state(client(servers=servers))])
    assert "Servers: 25" in lines and sum("server-" in line and "Mongos" in line for line in lines) == 20


@pytest.mark.parametrize("width", [80, 100, 120, 200, 300])
def test_all_texts_of_states_are_printed_at_any_width(width: int) -> None:
    lost_server = {**UNKNOWN_SERVER, "error": LONG_ERROR}
    slow = {**SLOW_ENTRY, "error": "NetworkTimeout"}
    client_state = client(
        servers=[SERVER, lost_server], operations=[OPERATION], slow=[slow], history=[{**EVENT, "error": LONG_ERROR}]
    )
    states = [state(client_state, process=1_234_567)]
    shown = printed_lines(states, width)
    assert max(map(len, shown)) <= width
    text = " ".join(" ".join(shown).split())
    for view in VIEWS:
        for word in {word for row in view_cells(view, *states, width=width) for cell in row for word in cell.split()}:
            assert word in text, (view.title, word)
    problem_text = " ".join(" ".join(shown[: shown.index("")]).split())
    assert LONG_ERROR in problem_text  # The complete error text is printed on several lines.


def lines_after(*keys: str, states: Sequence[dict[str, Any]], width: int = 80, height: int = 24) -> list[str]:
    """Return the lines of the screen after the given key presses."""
    text = io.StringIO()
    screen = Screen()
    console = Console(file=text, width=width, height=height, color_system=None)
    console.print(screen.visible_part(list(states), console))
    for key in keys:
        screen.press(key, width)
        text.truncate(0)
        console.print(screen.visible_part(list(states), console))
    return [line.strip("\x00").rstrip() for line in text.getvalue().splitlines()]


STATES = [
    state(client(operations=[{**OPERATION, "sinceMS": float(each), "greenlet": f"g{each}"}]), process=each)
    for each in range(1, 40)
]


def words_below(lines: list[str], name: str, word_index: int) -> list[str]:
    """Return word `word_index` of each non-empty line below the line that starts with `name`."""
    header_index = next(index for index, line in enumerate(lines) if line.strip().startswith(name))
    return [line.split()[word_index] for line in lines[header_index + 1 :] if line]


def test_screen_fits_the_terminal_size() -> None:
    for width, height in ((80, 24), (200, 50), (40, 5)):
        shown = lines_after(states=STATES, width=width, height=height)
        assert len(shown) <= height
        assert max(map(len, shown)) <= width
        assert shown[0].startswith("1 pools")


def test_number_keys_select_the_view_of_terminal() -> None:
    for key, title in {
        "1": "Pools: 39",
        "2": "Operations: 39",
        "3": "Slow operations: none",
        "4": "Failed checks",
    }.items():
        assert any(line.startswith(title) for line in lines_after(key, states=STATES))
    assert lines_after("x", states=STATES) == lines_after(states=STATES)
    events = lines_after("4", states=[state(client(history=[EVENT]))])
    assert ["process", "ago↑", "event", "times", "server", "reason"] in [line.split() for line in events]


def test_keys_s_and_r_change_the_sort_order() -> None:
    assert words_below(lines_after("2", states=STATES), "process", -1)[0] == "g39"
    assert words_below(lines_after("2", "r", states=STATES), "process", -1)[0] == "g1"
    by_process = lines_after("2", *"sssss", states=STATES)  # after the last column, `s` selects the first column
    assert "process↑" in "".join(by_process)
    assert words_below(by_process, "process", 0)[0] == "1"
    assert words_below(lines_after("2", *"sssss", "r", states=STATES), "process", 0)[0] == "39"
    # Page 1 shows the servers above the pools, and the keys sort the pools.
    orders = ["↑" in "".join(lines_after(*"s" * count, states=STATES, width=200)) for count in range(4)]
    assert orders[1:] == [True] * 3


def test_keys_scroll_between_first_and_last_row() -> None:
    assert words_below(lines_after("2", states=STATES), "process", -1)[-1] == "g21"
    assert "g20" in " ".join(lines_after("2", "j", states=STATES))
    last_screen = lines_after("2", *["\x1b[6~"] * 9, states=STATES)
    assert last_screen[-1].endswith("g1")
    assert "g2 " not in lines_after("2", *["\x1b[6~"] * 9, "k", states=STATES)[-1]
    assert lines_after("2", *["\x1b[6~"] * 9, *["\x1b[5~"] * 9, states=STATES) == lines_after("2", states=STATES)
    assert lines_after("2", *"jj", "1", states=STATES) == lines_after(states=STATES)
    assert lines_after("2", *"jjjj", states=STATES[:3]) == lines_after("2", states=STATES[:3]), "a short table scrolls"

"""What a terminal shows of the states of processes: every cell of every row."""

from __future__ import annotations

import io
from typing import Any

import pytest

pytest.importorskip("rich")

from rich.console import Console

from gmongo.status.terminal import tables

POOL = {"state": "ready", "inUse": 1, "available": 2, "pending": 3, "waiting": 4, "oldestWaitMS": 1500.0}
SERVER = {"address": "h:1", "type": "Mongos", "roundTripMS": 1.25, "error": "", "pool": POOL}
RETRIES = {"retries": 5, "others": 6, "tokens": 99.5}
OPERATION = {"phase": "waiting", "operation": "find shop.orders", "server": "h:1", "sinceMS": 20.0, "greenlet": "g1"}
HAPPENING = {"what": "elected primary", "server": "h:1", "times": 2, "agoMS": 61_000.0, "error": "gone"}


def client(**changed: Any) -> dict[str, Any]:
    plain = {"number": 7, "application": "shop", "servers": [SERVER], "operations": [], "history": []}
    return {**plain, "retries": RETRIES, **changed}


def shown(*states: dict[str, Any]) -> list[list[str]]:
    """The cells of all rows, and the titles."""
    text = io.StringIO()
    Console(file=text, width=400, color_system=None).print(tables(list(states)))
    lines = [line.strip(" │┃") for line in text.getvalue().splitlines()]
    cells = [[cell.strip() for cell in line.replace("┃", "│").split("│")] for line in lines]
    return [row for row in cells if row[0] and row[0][0] not in "┏┡└├"]


def state(*clients: dict[str, Any], process: Any = 12) -> dict[str, Any]:
    return {"process": process, "clients": list(clients)}


def test_a_server() -> None:
    assert ["12", "7 shop", "h:1", "Mongos", "1.2 ms", "ready", *"1234", "1.5 s", "11", "99.5"] in shown(
        state(client())
    )


def test_a_server_of_which_nothing_is_known() -> None:
    server = {"address": "h:2", "type": "Unknown", "roundTripMS": None, "error": "refused", "pool": None}
    row = ["12", "7", "h:2", "Unknown", "", "", "", "", "", "0", "", "11", "99.5", "refused"]
    assert row in shown(state(client(application="", servers=[server])))


def test_a_process_that_does_not_answer() -> None:
    (row,) = [row for row in shown({"process": "13", "error": "does not answer", "clients": []}) if row[0] == "13"]
    assert row == ["13", *[""] * 12, "does not answer"]


def test_operations_the_longest_first() -> None:
    operations = [{**OPERATION, "sinceMS": each, "greenlet": f"g{each:g}"} for each in (20.0, 3_000.0, 999.94)]
    rows = shown(state(client(operations=operations[:2])), state(client(operations=operations[2:]), process=13))
    assert ["Running operations: 3"] in rows
    assert [row for row in rows if row[1:2] == ["waiting"]] == [
        ["12", "waiting", "find shop.orders", "h:1", "3.0 s", "g3000"],
        ["13", "waiting", "find shop.orders", "h:1", "999.9 ms", "g999.94"],
        ["12", "waiting", "find shop.orders", "h:1", "20.0 ms", "g20"],
    ]


def test_what_has_happened_the_latest_first() -> None:
    history = [{**HAPPENING, "agoMS": each} for each in (61_000.0, 500.0)]
    assert [row for row in shown(state(client(history=history))) if row[1:2] == ["elected primary"]] == [
        ["12", "elected primary", "h:1", "2", "500.0 ms", "gone"],
        ["12", "elected primary", "h:1", "2", "61.0 s", "gone"],
    ]


def test_of_many_the_first_twenty_are_shown() -> None:
    rows = shown(state(client(operations=[OPERATION] * 25, history=[HAPPENING] * 25)))
    assert ["Running operations: 25"] in rows
    assert [sum(row[1:2] == [what] for row in rows) for what in ("waiting", "elected primary")] == [20, 20]


def test_no_process() -> None:
    assert shown() == [["no process serves its state here"]]

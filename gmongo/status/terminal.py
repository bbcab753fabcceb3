"""The states of processes as tables for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gmongo._documents import DocumentDict

_MOST_OPERATIONS = 20


def tables(states: list[DocumentDict]) -> RenderableType:
    """All processes side by side: a table of servers and pools, and one of the operations that have run longest.

    :param states: as :func:`gmongo.status.worker_states` returns them.
    """
    if not states:
        return Text("no process serves its state here")
    return Group(_servers(states), _operations(states), _history(states))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", expand=True, header_style="dim")
    for column in columns:
        name, is_number = column.removesuffix("#"), column.endswith("#")
        table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    return table


def _servers(states: list[DocumentDict]) -> Table:
    table = _table(
        "Servers",
        *("process", "client", "server", "type", "round trip#", "pool", "in use#", "available#", "connecting#"),
        *("waiting#", "longest wait#", "retries#", "tokens#", "error"),
    )
    for state in states:
        if "error" in state:
            table.add_row(str(state["process"]), *[""] * 12, Text(state["error"], "red"))
        for client in state["clients"]:
            for server in client["servers"]:
                table.add_row(str(state["process"]), *_server(client, server))
    return table


def _server(client: DocumentDict, server: DocumentDict) -> list[RenderableType]:
    pool, retries = server["pool"] or {}, client["retries"]
    is_known = server["type"] != "Unknown"
    waiting = pool.get("waiting", 0)
    return [
        Text(f"{client['number']} {client['application']}".strip()),
        Text(server["address"]),
        Text(server["type"], "" if is_known else "red"),
        _time(server["roundTripMS"]),
        Text(pool.get("state", ""), "" if pool.get("state") == "ready" else "yellow"),
        *(str(pool.get(name, "")) for name in ("inUse", "available", "pending")),
        Text(str(waiting), "red" if waiting else ""),
        _time(pool.get("oldestWaitMS")),
        str(retries["retries"] + retries["others"]),
        f"{retries['tokens']:g}",
        Text(server["error"]),
    ]


def _operations(states: list[DocumentDict]) -> Table:
    running = [
        (state["process"], each) for state in states for client in state["clients"] for each in client["operations"]
    ]
    running.sort(key=lambda item: -float(item[1]["sinceMS"]))
    table = _table(f"Running operations: {len(running)}", "process", "phase", "operation", "server", "for#", "greenlet")
    for process, each in running[:_MOST_OPERATIONS]:
        shown = (each["phase"], each["operation"], each["server"])
        table.add_row(str(process), *map(Text, shown), _time(each["sinceMS"]), Text(each["greenlet"]))
    return table


def _history(states: list[DocumentDict]) -> Table:
    happened = [
        (state["process"], each) for state in states for client in state["clients"] for each in client["history"]
    ]
    happened.sort(key=lambda item: float(item[1]["agoMS"]))
    table = _table("Checks that failed, elections", "process", "what", "server", "times#", "ago#", "reason")
    for process, each in happened[:_MOST_OPERATIONS]:
        table.add_row(
            str(process),
            Text(each["what"]),
            Text(each["server"]),
            str(each["times"]),
            _time(each["agoMS"]),
            Text(each["error"]),
        )
    return table


def _time(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"

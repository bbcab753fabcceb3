"""Definitions and texts of the tables that show process states on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gmongo._documents import DocumentDict
from gmongo.status.summary import summary

WIDE_TERMINAL_WIDTH = 120  # the minimum terminal width for all columns, in characters

Row = DocumentDict


class Column(NamedTuple):
    """Column of a table. `value` returns the sort key of a row. `text` returns the text of a cell."""

    name: str
    value: Callable[[Row], float | str | None]
    text: Callable[[Row], str] | None = None  # None: the cell shows the sort key
    is_wide: bool = False  # True if only a wide terminal shows the column

    def cell_text(self, row: Row) -> str:
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


class Order(NamedTuple):
    """Sort order of a table's rows: the name of a column, and True if the largest value is first."""

    column: str
    descending: bool = False


class View(NamedTuple):
    """Definition of a table. `rows` converts the states of processes to rows. `order` is the default sort order."""

    title: str
    rows: Callable[[list[DocumentDict]], Iterator[Row]]
    columns: tuple[Column, ...]
    order: Order

    def visible_columns(self, width: int) -> list[Column]:
        """Return the columns that a terminal with `width` characters shows."""
        return [each for each in self.columns if width >= WIDE_TERMINAL_WIDTH or not each.is_wide]


def _field_column(name: str, key: str | None = None, is_wide: bool = False) -> Column:
    """Return a column whose cells show the values of the field `key`, by default of `name`."""
    return Column(name, lambda row: row.get(key or name), None, is_wide)


def _duration_column(name: str, key: str) -> Column:
    """Return a column whose cells show the duration in the field `key`. The field contains milliseconds."""
    return Column(name, lambda row: row.get(key), lambda row: duration(row.get(key)))


def _make_columns(*columns: Column | str) -> tuple[Column, ...]:
    return tuple(_field_column(each) if isinstance(each, str) else each for each in columns)


def duration(milliseconds: float | None) -> str:
    """Return the text of a duration in milliseconds, seconds or minutes. Return an empty string for None."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.1f} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 120_000 else f"{milliseconds / 60_000:.0f} min"


def _server_rows(states: list[DocumentDict]) -> Iterator[Row]:
    """Yield one row for each server. The row merges the server descriptions of all clients."""
    by_address: dict[str, list[DocumentDict]] = {}
    for state in states:
        for client in state["clients"]:
            for server in client["servers"]:
                by_address.setdefault(server["address"], []).append(server)
    for address, servers in by_address.items():
        types = Counter(each["type"] for each in servers)
        round_trips = [each["roundTripMS"] for each in servers if each["roundTripMS"] is not None]
        yield {
            "server": address,
            "type": next(iter(types)) if len(types) == 1 else ", ".join(f"{n} {kind}" for kind, n in types.items()),
            "roundTripMS": max(round_trips, default=None),
            "clients": len(servers),
            "waiting": sum(each["pool"]["waiting"] for each in servers if each["pool"]),
            "error": "; ".join(dict.fromkeys(each["error"] for each in servers if each["error"])),
        }


def _pool_rows(states: list[DocumentDict]) -> Iterator[Row]:
    for state in states:
        for client in state["clients"]:
            retries = {**client["retries"], "retries": client["retries"]["retries"] + client["retries"]["others"]}
            name = f"{client['number']} {client['application']}".strip()
            for server in client["servers"]:
                if server["pool"]:
                    row = {"process": state["process"], "client": name, "server": server["address"]}
                    yield {**row, **server["pool"], **retries}


def _rows_of_list(key: str) -> Callable[[list[DocumentDict]], Iterator[Row]]:
    """Return a function that yields the elements of the list `key` in all clients as rows."""

    def yield_rows(states: list[DocumentDict]) -> Iterator[Row]:
        for state in states:
            for client in state["clients"]:
                for each in client[key]:
                    yield {"process": state["process"], **each}

    return yield_rows


_IN_USE_COLUMN = Column("in use", lambda row: row["inUse"], lambda row: f"{row['inUse']}/{row['maxPoolSize'] or '∞'}")

SERVERS = View(
    "Servers",
    _server_rows,
    _make_columns("server", "type", _duration_column("round trip", "roundTripMS"), "clients", "waiting", "error"),
    Order("server"),
)
POOLS = View(
    "Pools",
    _pool_rows,
    _make_columns(
        "process",
        "client",
        "server",
        _field_column("pool", "state"),
        _IN_USE_COLUMN,
        _field_column("available", is_wide=True),
        _field_column("connecting", "pending", is_wide=True),
        "waiting",
        _duration_column("longest wait", "oldestWaitMS"),
        *(_field_column(name, is_wide=True) for name in ("errors", "retries", "tokens")),
    ),
    Order("waiting", descending=True),
)
OPERATIONS = View(
    "Operations",
    _rows_of_list("operations"),
    _make_columns("process", _duration_column("duration", "sinceMS"), "phase", "operation", "server", "greenlet"),
    Order("duration", descending=True),
)


def _phase_text(row: Row) -> str:
    """Return a text with the phases that took more than one percent of the duration, longest phase first."""
    minimum = row["durationMS"] / 100
    parts = sorted(((row[f"{name}MS"], label) for name, label in _PHASE_LABELS.items()), reverse=True)
    return ", ".join(f"{label} {duration(milliseconds)}" for milliseconds, label in parts if milliseconds > minimum)


_PHASE_LABELS = {
    **{name: name for name in ("selection", "connecting", "server", "network", "decoding", "driver")},
    "checkOut": "check-out",
    "backOff": "back-off",
}
SLOW_OPERATIONS = View(
    "Slow operations",
    _rows_of_list("slow"),
    _make_columns(
        "process",
        _duration_column("ago", "agoMS"),
        _duration_column("duration", "durationMS"),
        "operation",
        "server",
        _field_column("attempts", "tries", is_wide=True),
        Column("phases", _phase_text),
        "error",
    ),
    Order("ago"),
)
EVENTS = View(
    "Failed checks, elections, added and removed servers",
    _rows_of_list("history"),
    _make_columns(
        "process",
        _duration_column("ago", "agoMS"),
        _field_column("event", "what"),
        "times",
        "server",
        _field_column("reason", "error"),
    ),
    Order("ago"),
)
VIEWS = (SERVERS, POOLS, OPERATIONS, SLOW_OPERATIONS, EVENTS)


_MAX_ROWS = 20
_STYLES = {"Unknown": "red", "paused": "yellow", "closed": "yellow"}


def overview(states: list[DocumentDict], width: int) -> RenderableType:
    """Return all problems and the first rows of all tables for a terminal with `width` characters."""
    tables = (table(view, states, width, view.order, _MAX_ROWS) for view in VIEWS)
    return Group(headline(states), problems(states), *tables)


def headline(states: list[DocumentDict]) -> RenderableType:
    """Return the totals of all processes in one line."""
    if not states:
        return Text("no process publishes its state in this directory")
    totals = summary(states)
    return Text(
        f"{_count_text(totals['processes'], 'process', 'processes')}, "
        f"{_count_text(totals['clients'], 'client', 'clients')}: "
        f"{totals['inUse']} of {_count_text(totals['total'], 'connection', 'connections')} in use, "
        f"{totals['waiting']} waiting, {_count_text(totals['errors'], 'error', 'errors')}"
    )


def problems(states: list[DocumentDict]) -> RenderableType:
    """Return the text of all problems, each problem with the complete error."""
    problem_list = summary(states)["wrong"]
    if not problem_list:
        return Text("No problems." if states else "", "green")
    lines: list[RenderableType] = [Text(f"Problems: {len(problem_list)}", "bold red")]
    for each in problem_list:
        since = "" if each["sinceMS"] is None else f" for {duration(each['sinceMS'])}"
        lines.append(Text.assemble(("! " + each["what"], "red"), " ", (each["server"], "bold"), since))
        lines += [Padding(Text(text), (0, 0, 0, 4)) for text in (_occurrence_text(each), each["error"]) if text]
    return Group(*lines)


def _occurrence_text(problem: DocumentDict) -> str:
    """Return a text with the event that began a problem, the instance count, and the process IDs."""
    event = f"since: {problem['event']}; " if problem["event"] else ""
    count = f"{problem['count']} times " if problem["count"] > len(problem["in"]) else ""
    return f"{event}{count}in process {', '.join(map(str, problem['in']))}"


def _count_text(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"


def table(
    view: View, states: list[DocumentDict], width: int, order: Order, max_rows: int | None = None
) -> RenderableType:
    """Return a sorted table for a terminal with `width` characters. `max_rows` is the maximum number of rows."""
    columns, rows = view.visible_columns(width), list(view.rows(states))
    title = f"{view.title}: {len(rows)}" if rows else f"{view.title}: none"
    sort_column = next(each for each in view.columns if each.name == order.column)
    rows.sort(key=lambda row: _sort_key(sort_column.value(row)), reverse=order.descending)
    result = Table(title=Text(title, "bold"), title_justify="left", box=None, header_style="dim", pad_edge=False)
    for each in columns:
        is_number = all(isinstance(each.value(row), (int, float, type(None))) for row in rows)
        mark = ("↓" if order.descending else "↑") if each is sort_column else ""
        result.add_column(
            f"{each.name}{mark}", justify="right" if is_number else "left", no_wrap=is_number, overflow="fold"
        )
    for row in rows[:max_rows]:
        result.add_row(*(_styled_cell(each, row) for each in columns))
    return Group(Text(), result if rows else Text(title, "bold"))


def _sort_key(value: float | str | None) -> tuple[bool, float, str]:
    """Return a sort key that orders None before numbers, and numbers before texts."""
    return (True, 0, value) if isinstance(value, str) else (False, float("-inf") if value is None else value, "")


def _styled_cell(column: Column, row: Row) -> Text:
    text = column.cell_text(row)
    is_bad = column.name == "error" or (column.name == "waiting" and row["waiting"])
    return Text(text, "red" if is_bad else _STYLES.get(text, ""))

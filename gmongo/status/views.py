"""Definitions of the tables that show process states on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gmongo._documents import DocumentDict

WIDE = 120  # the minimum terminal width for all columns, in characters

Row = DocumentDict


class Column(NamedTuple):
    """Column of a table. `value` returns the sort key of a row. `text` returns the text of a cell."""

    name: str
    value: Callable[[Row], float | str | None]
    text: Callable[[Row], str] | None = None  # None shows the sort key
    is_wide: bool = False  # True if only a wide terminal shows the column

    def cell_text(self, row: Row) -> str:
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


class Order(NamedTuple):
    """Sort order of the rows of a table: the name of a column, and True if the largest value is first."""

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
        return [each for each in self.columns if width >= WIDE or not each.is_wide]


def _field_column(name: str, key: str | None = None, is_wide: bool = False) -> Column:
    """Return a column whose cells show the values of the field `key`, by default of the field `name`."""
    return Column(name, lambda row: row.get(key or name), None, is_wide)


def _duration_column(name: str, key: str, is_wide: bool = False) -> Column:
    """Return a column whose cells show the duration in the field `key`. The field contains milliseconds."""
    return Column(name, lambda row: row.get(key), lambda row: duration(row.get(key)), is_wide)


def _columns(*columns: Column | str) -> tuple[Column, ...]:
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
                    where = {"process": state["process"], "client": name, "server": server["address"]}
                    yield {**where, **server["pool"], **retries}


def _rows_of_list(key: str) -> Callable[[list[DocumentDict]], Iterator[Row]]:
    """Return a function that yields the elements of the list `key` in all clients as rows."""

    def rows(states: list[DocumentDict]) -> Iterator[Row]:
        for state in states:
            for client in state["clients"]:
                for each in client[key]:
                    yield {"process": state["process"], **each}

    return rows


_IN_USE = Column("in use", lambda row: row["inUse"], lambda row: f"{row['inUse']}/{row['maxPoolSize'] or '∞'}")

SERVERS = View(
    "Servers",
    _server_rows,
    _columns("server", "type", _duration_column("round trip", "roundTripMS"), "clients", "waiting", "error"),
    Order("server"),
)
POOLS = View(
    "Pools",
    _pool_rows,
    _columns(
        "process",
        "client",
        "server",
        _field_column("pool", "state"),
        _IN_USE,
        _field_column("available", is_wide=True),
        _field_column("connecting", "pending", is_wide=True),
        "waiting",
        _duration_column("longest", "oldestWaitMS"),
        *(_field_column(name, is_wide=True) for name in ("errors", "retries", "tokens")),
    ),
    Order("waiting", descending=True),
)
OPERATIONS = View(
    "Operations",
    _rows_of_list("operations"),
    _columns("process", _duration_column("for", "sinceMS"), "phase", "operation", "server", "greenlet"),
    Order("for", descending=True),
)


def _phase_durations(row: Row) -> str:
    """Return a text with the longest phases of a slow operation. Omit phases below one percent of the duration."""
    minimum = row["durationMS"] / 100
    parts = sorted(((row.get(f"{name}MS") or 0, shown) for name, shown in _PARTS.items()), reverse=True)
    return ", ".join(f"{shown} {duration(milliseconds)}" for milliseconds, shown in parts if milliseconds > minimum)


_PARTS = {
    **{name: name for name in ("selection", "connecting", "server", "network", "decoding", "driver")},
    "checkOut": "check-out",
    "backOff": "back-off",
}
SLOW = View(
    "Slow operations",
    _rows_of_list("slow"),
    _columns(
        "process",
        _duration_column("ago", "agoMS"),
        _duration_column("took", "durationMS"),
        "operation",
        "server",
        _field_column("tries", is_wide=True),
        Column("spent", _phase_durations),
        "error",
    ),
    Order("ago"),
)
EVENTS = View(
    "Failed checks, elections, added and removed servers",
    _rows_of_list("history"),
    _columns(
        "process",
        _duration_column("ago", "agoMS"),
        _field_column("event", "what"),
        "times",
        "server",
        _field_column("reason", "error"),
    ),
    Order("ago"),
)
VIEWS = (SERVERS, POOLS, OPERATIONS, SLOW, EVENTS)

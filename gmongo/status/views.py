"""The states of processes as rows and columns, for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gmongo._documents import DocumentDict

WIDE = 120  # characters from which on there is room for all columns

Row = DocumentDict


class Column(NamedTuple):
    """A column of a table.

    :param name: what stands above it.
    :param value: what rows are sorted by.
    :param text: what is shown; None is the value.
    :param is_wide: whether it is left out where there is little room.
    """

    name: str
    value: Callable[[Row], float | str | None]
    text: Callable[[Row], str] | None = None
    is_wide: bool = False

    def shown(self, row: Row) -> str:
        """What stands in a row."""
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


class Order(NamedTuple):
    """How rows are sorted.

    :param column: the name of a column.
    :param descending: whether the largest comes first.
    """

    column: str
    descending: bool = False


class View(NamedTuple):
    """A table that can be looked at.

    :param title: above it.
    :param rows: what it shows of the states of processes.
    :param columns: from the left.
    :param order: how it is sorted if nothing else is asked for.
    """

    title: str
    rows: Callable[[list[DocumentDict]], Iterator[Row]]
    columns: tuple[Column, ...]
    order: Order

    def shown(self, width: int) -> list[Column]:
        """The columns that there is room for."""
        return [each for each in self.columns if width >= WIDE or not each.is_wide]


def _field(name: str, of: str | None = None, is_wide: bool = False) -> Column:
    """A column with a value as it is."""
    return Column(name, lambda row: row.get(of or name), None, is_wide)


def _time(name: str, of: str, is_wide: bool = False) -> Column:
    """A column with a time in milliseconds."""
    return Column(name, lambda row: row.get(of), lambda row: duration(row.get(of)), is_wide)


def duration(milliseconds: float | None) -> str:
    """A time in the unit that suits it."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.1f} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 120_000 else f"{milliseconds / 60_000:.0f} min"


def _servers(states: list[DocumentDict]) -> Iterator[Row]:
    """Each server once, as all clients see it."""
    seen: dict[str, list[DocumentDict]] = {}
    for state in states:
        for client in state["clients"]:
            for server in client["servers"]:
                seen.setdefault(server["address"], []).append(server)
    for address, found in seen.items():
        types = Counter(each["type"] for each in found)
        round_trips = [each["roundTripMS"] for each in found if each["roundTripMS"] is not None]
        yield {
            "server": address,
            "type": next(iter(types)) if len(types) == 1 else ", ".join(f"{n} {kind}" for kind, n in types.items()),
            "roundTripMS": max(round_trips, default=None),
            "clients": len(found),
            "waiting": sum(each["pool"]["waiting"] for each in found if each["pool"]),
            "error": "; ".join(dict.fromkeys(each["error"] for each in found if each["error"])),
        }


def _pools(states: list[DocumentDict]) -> Iterator[Row]:
    for state in states:
        for client in state["clients"]:
            retries = {**client["retries"], "retries": client["retries"]["retries"] + client["retries"]["others"]}
            name = f"{client['number']} {client['application']}".strip()
            for server in client["servers"]:
                if server["pool"]:
                    where = {"process": state["process"], "client": name, "server": server["address"]}
                    yield {**where, **server["pool"], **retries}


def _listed(what: str) -> Callable[[list[DocumentDict]], Iterator[Row]]:
    """What all clients have in a list."""

    def rows(states: list[DocumentDict]) -> Iterator[Row]:
        for state in states:
            for client in state["clients"]:
                for each in client[what]:
                    yield {"process": state["process"], **each}

    return rows


_IN_USE = Column("in use", lambda row: row["inUse"], lambda row: f"{row['inUse']}/{row['maxPoolSize'] or '∞'}")

SERVERS = View(
    "Servers",
    _servers,
    (
        _field("server"),
        _field("type"),
        _time("round trip", "roundTripMS"),
        _field("clients"),
        _field("waiting"),
        _field("error"),
    ),
    Order("server"),
)
POOLS = View(
    "Pools",
    _pools,
    (
        _field("process"),
        _field("client"),
        _field("server"),
        _field("pool", "state"),
        _IN_USE,
        _field("available", is_wide=True),
        _field("connecting", "pending", is_wide=True),
        _field("waiting"),
        _time("longest", "oldestWaitMS"),
        _field("errors", is_wide=True),
        _field("retries", is_wide=True),
        _field("tokens", is_wide=True),
    ),
    Order("waiting", descending=True),
)
OPERATIONS = View(
    "Operations",
    _listed("operations"),
    (
        _field("process"),
        _time("for", "sinceMS"),
        _field("phase"),
        _field("operation"),
        _field("server"),
        _field("greenlet"),
    ),
    Order("for", descending=True),
)


def _spent(row: Row) -> str:
    """Where the time of a slow operation went, the most of it first."""
    least = row["durationMS"] / 100
    parts = sorted(((row.get(f"{name}MS") or 0, shown) for name, shown in _PARTS.items()), reverse=True)
    return ", ".join(f"{shown} {duration(milliseconds)}" for milliseconds, shown in parts if milliseconds > least)


_PARTS = {
    **{name: name for name in ("selection", "connecting", "server", "network", "decoding", "driver")},
    "checkOut": "check-out",
    "backOff": "back-off",
}
SLOW = View(
    "Slow operations",
    _listed("slow"),
    (
        _field("process"),
        _time("ago", "agoMS"),
        _time("took", "durationMS"),
        _field("operation"),
        _field("server"),
        _field("tries", is_wide=True),
        Column("spent", _spent),
        _field("error"),
    ),
    Order("ago"),
)
EVENTS = View(
    "Checks that failed, elections, servers that came and went",
    _listed("history"),
    (
        _field("process"),
        _time("ago", "agoMS"),
        _field("event", "what"),
        _field("times"),
        _field("server"),
        _field("reason", "error"),
    ),
    Order("ago"),
)
VIEWS = (SERVERS, POOLS, OPERATIONS, SLOW, EVENTS)

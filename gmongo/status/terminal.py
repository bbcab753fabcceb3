"""The states of processes as text and tables for a terminal."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gmongo._documents import DocumentDict
from gmongo.status.summary import summary
from gmongo.status.views import VIEWS, Column, Order, Row, View, duration

_MOST = 20
_STYLES = {"Unknown": "red", "paused": "yellow", "closed": "yellow"}


class Tables:
    """Everything: what is wrong, and the first rows of all tables, as there is room for their columns.

    :param states: as :func:`gmongo.status.worker_states` returns them.
    """

    def __init__(self, states: list[DocumentDict]) -> None:
        self._states = states

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield headline(self._states)
        yield problems(self._states)
        for view in VIEWS:
            yield table(view, self._states, options.max_width, view.order, _MOST)


def headline(states: list[DocumentDict]) -> RenderableType:
    """All processes in a line."""
    if not states:
        return Text("no process serves its state here")
    whole = summary(states)
    return Text(
        f"{_counted(whole['processes'], 'process', 'processes')}, {_counted(whole['clients'], 'client', 'clients')}: "
        f"{whole['inUse']} of {_counted(whole['total'], 'connection', 'connections')} in use, "
        f"{whole['waiting']} waiting, {_counted(whole['errors'], 'error', 'errors')}"
    )


def problems(states: list[DocumentDict]) -> RenderableType:
    """What is wrong, each with its whole error."""
    found = summary(states)["wrong"]
    if not found:
        return Text("Nothing is wrong." if states else "", "green")
    lines: list[RenderableType] = [Text(f"Wrong: {len(found)}", "bold red")]
    for each in found:
        since = "" if each["sinceMS"] is None else f" for {duration(each['sinceMS'])}"
        lines.append(Text.assemble(("! " + each["what"], "red"), " ", (each["server"], "bold"), since))
        lines += [Padding(Text(text), (0, 0, 0, 4)) for text in (_extent(each), each["error"]) if text]
    return Group(*lines)


def _extent(found: DocumentDict) -> str:
    """Since which event, how many, and in which processes."""
    event = f"since: {found['event']}; " if found["event"] else ""
    many = f"{found['count']} times " if found["count"] > len(found["in"]) else ""
    return f"{event}{many}in process {', '.join(map(str, found['in']))}"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def table(view: View, states: list[DocumentDict], width: int, order: Order, most: int | None = None) -> RenderableType:
    """A table with the rows in an order.

    :param width: of the terminal, in characters.
    :param most: how many rows are shown; None is all.
    """
    columns, rows = view.shown(width), list(view.rows(states))
    title = f"{view.title}: {len(rows)}" if rows else f"{view.title}: none"
    by = next(each for each in view.columns if each.name == order.column)
    rows.sort(key=lambda row: _rank(by.value(row)), reverse=order.descending)
    made = Table(title=Text(title, "bold"), title_justify="left", box=None, header_style="dim", pad_edge=False)
    for each in columns:
        is_number = all(isinstance(each.value(row), (int, float, type(None))) for row in rows)
        mark = ("↓" if order.descending else "↑") if each is by else ""
        made.add_column(
            f"{each.name}{mark}", justify="right" if is_number else "left", no_wrap=is_number, overflow="fold"
        )
    for row in rows[:most]:
        made.add_row(*(_cell(each, row) for each in columns))
    return Group(Text(), made if rows else Text(title, "bold"))


def _rank(value: float | str | None) -> tuple[bool, float, str]:
    """What rows are sorted by: nothing before numbers before text."""
    return (True, 0, value) if isinstance(value, str) else (False, float("-inf") if value is None else value, "")


def _cell(column: Column, row: Row) -> Text:
    text = column.shown(row)
    is_bad = column.name == "error" or (column.name == "waiting" and row["waiting"])
    return Text(text, "red" if is_bad else _STYLES.get(text, ""))

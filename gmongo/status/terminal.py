"""Text and tables of process states for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gmongo._documents import DocumentDict
from gmongo.status.summary import summary
from gmongo.status.views import VIEWS, Column, Order, Row, View, duration

_MAX_ROWS = 20
_STYLES = {"Unknown": "red", "paused": "yellow", "closed": "yellow"}


def overview(states: list[DocumentDict], width: int) -> RenderableType:
    """Return all problems, and the first rows of all tables, for a terminal with `width` characters."""
    tables = (table(view, states, width, view.order, _MAX_ROWS) for view in VIEWS)
    return Group(headline(states), problems(states), *tables)


def headline(states: list[DocumentDict]) -> RenderableType:
    """Return the totals of all processes in one line."""
    if not states:
        return Text("no process publishes its state here")
    totals = summary(states)
    return Text(
        f"{_count_text(totals['processes'], 'process', 'processes')}, "
        f"{_count_text(totals['clients'], 'client', 'clients')}: "
        f"{totals['inUse']} of {_count_text(totals['total'], 'connection', 'connections')} in use, "
        f"{totals['waiting']} waiting, {_count_text(totals['errors'], 'error', 'errors')}"
    )


def problems(states: list[DocumentDict]) -> RenderableType:
    """Return the text of all problems, each problem with the complete error."""
    wrong = summary(states)["wrong"]
    if not wrong:
        return Text("Nothing is wrong." if states else "", "green")
    lines: list[RenderableType] = [Text(f"Wrong: {len(wrong)}", "bold red")]
    for each in wrong:
        since = "" if each["sinceMS"] is None else f" for {duration(each['sinceMS'])}"
        lines.append(Text.assemble(("! " + each["what"], "red"), " ", (each["server"], "bold"), since))
        lines += [Padding(Text(text), (0, 0, 0, 4)) for text in (_occurrence_text(each), each["error"]) if text]
    return Group(*lines)


def _occurrence_text(problem: DocumentDict) -> str:
    """Return a text with the event that began a problem, the number of instances, and the process IDs."""
    event = f"since: {problem['event']}; " if problem["event"] else ""
    many = f"{problem['count']} times " if problem["count"] > len(problem["in"]) else ""
    return f"{event}{many}in process {', '.join(map(str, problem['in']))}"


def _count_text(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"


def table(
    view: View, states: list[DocumentDict], width: int, order: Order, max_rows: int | None = None
) -> RenderableType:
    """Return a sorted table for a terminal with `width` characters. If `max_rows` is not None, omit later rows."""
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
        result.add_row(*(_cell(each, row) for each in columns))
    return Group(Text(), result if rows else Text(title, "bold"))


def _sort_key(value: float | str | None) -> tuple[bool, float, str]:
    """Return a sort key that orders None before numbers, and numbers before texts."""
    return (True, 0, value) if isinstance(value, str) else (False, float("-inf") if value is None else value, "")


def _cell(column: Column, row: Row) -> Text:
    text = column.cell_text(row)
    is_bad = column.name == "error" or (column.name == "waiting" and row["waiting"])
    return Text(text, "red" if is_bad else _STYLES.get(text, ""))

"""Audit: a listener that checks each command against API version 1, and the report of the audit."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import TextIO

from gmongo._server_facts import codes
from gmongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent
from gmongo.stable_api.rules import Finding, Remark, Verdict, remarks_on

_DRIVER_FOLDER = str(Path(__file__).parents[1]) + os.sep
_LIBRARY_FOLDERS = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class Audit(CommandListener):
    """Command listener that finds commands outside of API version 1, and deprecated commands.

    ``MongoClient(event_listeners=[audit])`` audits one client. ``gmongo.monitoring.register(audit)``
    audits all clients that the application creates later. The clients need no ``server_api``. The
    audit checks only the names of ``createUser`` and of other commands with secret content.

    :ivar commands: the number of audited commands.
    """

    def __init__(self) -> None:
        self.commands = 0
        self._findings: dict[Remark, Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """All findings, sorted by severity of the verdict, then by frequency, in descending order."""
        order = list(Verdict)
        return sorted(self._findings.values(), key=lambda each: (order.index(each.remark.verdict), -each.count))

    @property
    def is_clean(self) -> bool:
        """True if no finding hinders the use of ``strict=True`` and ``deprecation_errors=True``."""
        return not any(finding.hinders for finding in self._findings.values())

    def report(self) -> str:
        """Return the findings as text of several lines."""
        return as_text(self)

    # Methods that the driver calls

    def started(self, event: CommandStartedEvent) -> None:
        """Check a command, and record the findings.

        :param event: the event with the command.
        """
        if event.command_name != "killSessions" or _call_location():  # a strict client sends no own killSessions
            self.commands += 1
            self._record_remarks(remarks_on(event.command_name, event.command))

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """Do nothing, because :meth:`started` has checked the command.

        :param event: the event of the command.
        """

    def failed(self, event: CommandFailedEvent) -> None:
        """Record a command that the server refused because of the API version.

        :param event: the event of the command.
        """
        failure: object = event.failure
        if isinstance(failure, dict) and failure.get("code") in codes.API_REFUSALS:
            self._record_remarks([Remark(Verdict.REFUSED, event.command_name, advice=str(failure.get("errmsg", "")))])

    def _record_remarks(self, remarks: Iterable[Remark]) -> None:
        for remark in dict.fromkeys(remarks):
            finding = self._findings.get(remark)
            if finding is None:
                finding = self._findings[remark] = Finding(remark, _call_location())
            finding.count += 1


def _call_location() -> str:
    """Return ``file:line`` of the innermost application frame. Without such a frame, use a library frame."""
    fallback = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(("<frozen", _DRIVER_FOLDER)):
            location = f"{_relative_path(file)}:{frame.f_lineno}"
            if not file.startswith(_LIBRARY_FOLDERS):
                return location
            fallback = fallback or location
        frame = frame.f_back
    return fallback


def _relative_path(file: str) -> str:
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def as_text(audit: Audit) -> str:
    """Return the report in plain text."""
    lines = [_summary(audit)]
    for verdict, findings in groupby(audit.findings, key=lambda finding: finding.remark.verdict):
        rows = [_table_row(finding) for finding in findings]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines += ["", f"{verdict.value}:"]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def as_json(audit: Audit) -> str:
    """Return the report as a JSON document."""
    findings = [
        {
            **finding.remark._asdict(),
            "verdict": finding.remark.verdict.name.lower(),
            "count": finding.count,
            "place": finding.place,
        }
        for finding in audit.findings
    ]
    return json.dumps({"commands": audit.commands, "clean": audit.is_clean, "findings": findings}, indent=2)


def show(audit: Audit, stream: TextIO) -> None:
    """Write the report as plain text, or as coloured tables if `stream` is a terminal and ``rich`` is installed."""
    if stream.isatty():
        try:
            return _show_rich(audit, stream)
        except ImportError:
            pass
    print(as_text(audit), file=stream)


def _show_rich(audit: Audit, stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream)
    console.print(_summary(audit), style="green" if audit.is_clean else "yellow")
    for verdict, findings in groupby(audit.findings, key=lambda finding: finding.remark.verdict):
        table = Table("what", "times", "first used at", "", title=verdict.value, title_justify="left")
        for finding in findings:
            table.add_row(*_table_row(finding))
        console.print(table)


def _summary(audit: Audit) -> str:
    prefix = f"API version 1: {audit.commands} command{'s' if audit.commands != 1 else ''} audited"
    hindrance_count = sum(finding.hinders for finding in audit.findings)
    if audit.is_clean:
        return f"{prefix}, no command that ServerApi('1', strict=True, deprecation_errors=True) would refuse"
    noun = "finding" if hindrance_count == 1 else "findings"
    return f"{prefix}, {hindrance_count} {noun} that ServerApi('1', strict=True, deprecation_errors=True) may refuse"


def _table_row(finding: Finding) -> tuple[str, str, str, str]:
    remark = finding.remark
    label = f"{remark.command}: {remark.part}" if remark.part else remark.command
    return label, f"{finding.count}x", finding.place or "(the driver)", remark.advice


def write(audit: Audit, path: str | None, machine_readable: bool) -> None:
    """Write the report to a file, or to standard error if `path` is None. The program may use standard output."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as stream:
            print(as_json(audit) if machine_readable else as_text(audit), file=stream)
    elif machine_readable:
        print(as_json(audit), file=sys.stderr)
    else:
        show(audit, sys.stderr)

"""Report of an audit as plain text, as JSON, or as tables on a terminal if ``rich`` is installed."""

from __future__ import annotations

import json
import sys
from itertools import groupby
from typing import Protocol, TextIO

from gmongo.stable_api.rules import Finding

_HEADER = ("what", "times", "first used at", "")


class AuditResults(Protocol):
    """Attributes of an audit that the report shows."""

    commands: int

    @property
    def findings(self) -> list[Finding]: ...

    @property
    def is_clean(self) -> bool: ...


def as_text(audit: AuditResults) -> str:
    """Return the report in plain text."""
    lines = [_summary(audit)]
    for verdict, findings in groupby(audit.findings, key=lambda finding: finding.remark.verdict):
        rows = [_row(finding) for finding in findings]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines += ["", f"{verdict.value}:"]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def as_json(audit: AuditResults) -> str:
    """Return the report as a JSON document."""
    findings = [
        {
            "verdict": finding.remark.verdict.name.lower(),
            "command": finding.remark.command,
            "part": finding.remark.part,
            "advice": finding.remark.advice,
            "count": finding.count,
            "place": finding.place,
        }
        for finding in audit.findings
    ]
    return json.dumps({"commands": audit.commands, "clean": audit.is_clean, "findings": findings}, indent=2)


def show(audit: AuditResults, stream: TextIO) -> None:
    """Write the report as plain text, or as coloured tables if `stream` is a terminal and ``rich`` is installed."""
    if stream.isatty():
        try:
            return _show_rich(audit, stream)
        except ImportError:
            pass
    print(as_text(audit), file=stream)


def _show_rich(audit: AuditResults, stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream)
    console.print(_summary(audit), style="green" if audit.is_clean else "yellow")
    for verdict, findings in groupby(audit.findings, key=lambda finding: finding.remark.verdict):
        table = Table(*_HEADER, title=verdict.value, title_justify="left")
        for finding in findings:
            table.add_row(*_row(finding))
        console.print(table)


def _summary(audit: AuditResults) -> str:
    prefix = f"API version 1: {audit.commands} command{'s' if audit.commands != 1 else ''} seen"
    hindrances = sum(finding.hinders for finding in audit.findings)
    if audit.is_clean:
        return f"{prefix}, nothing that ServerApi('1', strict=True, deprecation_errors=True) would refuse"
    noun = "thing" if hindrances == 1 else "things"
    return f"{prefix}, {hindrances} {noun} that ServerApi('1', strict=True, deprecation_errors=True) may refuse"


def _row(finding: Finding) -> tuple[str, str, str, str]:
    remark = finding.remark
    label = f"{remark.command}: {remark.part}" if remark.part else remark.command
    return label, f"{finding.count}x", finding.place or "(the driver)", remark.advice


def write(audit: AuditResults, path: str | None, machine_readable: bool) -> None:
    """Write the report to a file, or to standard error if `path` is None. The program may use standard output."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as stream:
            print(as_json(audit) if machine_readable else as_text(audit), file=stream)
    elif machine_readable:
        print(as_json(audit), file=sys.stderr)
    else:
        show(audit, sys.stderr)

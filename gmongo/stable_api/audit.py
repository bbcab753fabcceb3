"""Audit: a listener that checks each command of an application against API version 1."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from gmongo._server_facts import codes
from gmongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent
from gmongo.stable_api.report import as_text
from gmongo.stable_api.rules import Finding, Remark, Verdict, remarks_on

_DRIVER = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class Audit(CommandListener):
    """Command listener that finds commands outside of API version 1, and deprecated commands.

    ``MongoClient(event_listeners=[audit])`` audits one client. ``gmongo.monitoring.register(audit)`` audits all clients
    that the application creates later. The clients need no ``server_api``. If a command has secret content, such as
    ``createUser``, the audit checks only the name of the command.

    :ivar commands: the number of audited commands.
    """

    def __init__(self) -> None:
        self.commands = 0
        self._findings: dict[Remark, Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """All findings: the most serious findings first, then the most frequent findings."""
        order = list(Verdict)
        return sorted(self._findings.values(), key=lambda each: (order.index(each.remark.verdict), -each.count))

    @property
    def is_clean(self) -> bool:
        """True if no audited command would fail with ``strict=True`` and ``deprecation_errors=True``."""
        return not any(finding.hinders for finding in self._findings.values())

    def report(self) -> str:
        """Return the findings as text of several lines."""
        return as_text(self)

    # Methods that the driver calls

    def started(self, event: CommandStartedEvent) -> None:
        """Check a command, and record the findings.

        :param event: the event with the command.
        """
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
                finding = self._findings[remark] = Finding(remark, _place())
            finding.count += 1


def _place() -> str:
    """Return ``file:line`` of the innermost application frame. Without such a frame, return the place in a library."""
    fallback = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(("<frozen", _DRIVER)):
            place = f"{_relative_path(file)}:{frame.f_lineno}"
            if not file.startswith(_LIBRARIES):
                return place
            fallback = fallback or place
        frame = frame.f_back
    return fallback


def _relative_path(file: str) -> str:
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file

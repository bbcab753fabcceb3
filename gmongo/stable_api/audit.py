"""The audit: a listener that judges every command of an application."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from gmongo._server_facts import codes
from gmongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent
from gmongo.stable_api.judgement import Finding, Remark, Verdict, remarks_on
from gmongo.stable_api.report import as_text

_DRIVER = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class Audit(CommandListener):
    """Tells which commands of an application are outside of API version 1, or deprecated in it.

    ``MongoClient(event_listeners=[audit])`` audits one client, ``gmongo.monitoring.register(audit)`` all clients that
    are made from then on. The clients need not have a ``server_api``. A command whose content is secret, such as
    ``createUser``, is judged by its name only.

    :ivar commands: how many commands it has seen.
    """

    def __init__(self) -> None:
        self.commands = 0
        self._findings: dict[Remark, Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """All findings: the most serious first, and of the same kind the most frequent first."""
        order = list(Verdict)
        return sorted(self._findings.values(), key=lambda each: (order.index(each.remark.verdict), -each.count))

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found that ``strict=True`` and ``deprecation_errors=True`` would turn into an error."""
        return not any(finding.hinders for finding in self._findings.values())

    def report(self) -> str:
        """The findings as a text of several lines."""
        return as_text(self)

    # What the driver calls

    def started(self, event: CommandStartedEvent) -> None:
        """Judge a command.

        :param event: the command.
        """
        self.commands += 1
        self._note(remarks_on(event.command_name, event.command))

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """There is nothing to say of a success.

        :param event: of the command.
        """

    def failed(self, event: CommandFailedEvent) -> None:
        """Note what the server itself has refused because of the API version.

        :param event: of the command.
        """
        failure: object = event.failure
        if isinstance(failure, dict) and failure.get("code") in codes.API_REFUSALS:
            self._note([Remark(Verdict.REFUSED, event.command_name, advice=str(failure.get("errmsg", "")))])

    def _note(self, remarks: Iterable[Remark]) -> None:
        for remark in dict.fromkeys(remarks):
            finding = self._findings.get(remark)
            if finding is None:
                finding = self._findings[remark] = Finding(remark, _place())
            finding.count += 1


def _place() -> str:
    """``file:line`` of the innermost code that is neither the driver's nor a library's; of a library's, if there is
    no other.
    """
    fallback = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(("<frozen", _DRIVER)):
            place = f"{_shown(file)}:{frame.f_lineno}"
            if not file.startswith(_LIBRARIES):
                return place
            fallback = fallback or place
        frame = frame.f_back
    return fallback


def _shown(file: str) -> str:
    """A path as it is read best: relative to the working directory, if it is below that."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file

"""The log of slow operations: one line each, which says where the time went."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from gmongo._documents import DocumentDict
from gmongo._telemetry.text import exception_of, query_text
from gmongo.events.log import log
from gmongo.execution.account import Account, Observer
from gmongo.wire.address import address_text

if TYPE_CHECKING:
    from gmongo.events.command import Sent

slow_log = logging.getLogger("gmongo.slow")

_KEPT = 50


class SlowOperations(Observer):
    """Logs the slow operations of one client, on the level WARNING, and keeps the last of them.

    :param limit: operations that take this long are slow, in seconds.
    :param query_text_max_length: how many characters of a command are kept; 0 is none. They are never logged.
    """

    times_decoding = True

    def __init__(self, limit: float, query_text_max_length: int) -> None:
        self.limit = limit
        self.last: deque[DocumentDict] = deque(maxlen=_KEPT)
        self._text_length = query_text_max_length

    def command_started(self, account: Account, sent: Sent) -> None:
        if self._text_length and not sent.sensitive:
            account.notes[self] = sent.command

    def operation_ended(self, account: Account, error: BaseException | None) -> None:
        seconds = account.elapsed()
        if seconds < self.limit:
            return
        found = {"operation": account.summary, "durationMS": _milliseconds(seconds), **_parts(account, seconds)}
        found["tries"], found["commands"] = account.tries, account.commands
        if account.address is not None:
            found["server"] = address_text(account.address)
        if error is not None:
            found["error"] = exception_of(error, 0)["exception.message"]
        command = account.notes.pop(self, None)
        kept = {**found, "moment": account.started + seconds}
        if command is not None:
            kept["text"] = query_text(command, self._text_length)
        self.last.append(kept)
        if slow_log.isEnabledFor(logging.WARNING):
            log(slow_log, _line(found), {"message": "Slow operation", **found}, logging.WARNING)


def _parts(account: Account, seconds: float) -> dict[str, float]:
    """Where the time went, in milliseconds. What the network took is known from round trips of empty commands."""
    answering = max(account.exchanging - account.decoding, 0.0)
    network = min(account.round_trip * account.commands, answering)
    known = account.selecting + account.checking_out + account.backing_off + account.exchanging
    parts = {
        "selection": account.selecting,
        "checkOut": max(account.checking_out - account.connecting, 0.0),
        "connecting": account.connecting,
        "server": answering - network,
        "network": network,
        "decoding": account.decoding,
        "backOff": account.backing_off,
        "driver": max(seconds - known, 0.0),
    }
    return {f"{name}MS": _milliseconds(part) for name, part in parts.items()}


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _line(found: DocumentDict) -> str:
    parts = ", ".join(
        f"{words} {found[f'{name}MS']:g}"
        for name, words in _WORDS.items()
        if found[f"{name}MS"] or name in ("server", "network")
    )
    where = f" on {found['server']}" if "server" in found else ""
    tries = f"; {found['tries']} tries" if found["tries"] > 1 else ""
    error = f"; failed: {found['error']}" if "error" in found else ""
    return f"Slow operation: {found['operation']}{where} took {found['durationMS']:g} ms: {parts}{tries}{error}"


_WORDS = {
    "selection": "server selection",
    "checkOut": "check-out",
    "connecting": "connecting",
    "server": "server",
    "network": "network",
    "decoding": "decoding",
    "backOff": "back-off",
    "driver": "the driver itself",
}

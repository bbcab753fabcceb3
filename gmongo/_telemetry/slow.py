"""Log of slow operations: one line for each slow operation, with the durations of its phases."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from gmongo._documents import DocumentDict
from gmongo._telemetry.text import error_attributes, query_text
from gmongo.events.log import log
from gmongo.execution.operation_trace import Observer, OperationTrace
from gmongo.wire.address import address_text

if TYPE_CHECKING:
    from gmongo.events.command import SentCommand

slow_log = logging.getLogger("gmongo.slow")

_MAX_ENTRIES = 50


class SlowOperations(Observer):
    """Observer that logs the slow operations of one client at level WARNING, and keeps the last 50 slow operations.

    `limit` is the minimum duration of a slow operation, in seconds. `query_text_max_length` is the
    maximum length of the text of a stored command, in characters. The log contains no commands.
    """

    times_decoding = True

    def __init__(self, limit: float, query_text_max_length: int) -> None:
        self.limit = limit
        self.entries: deque[DocumentDict] = deque(maxlen=_MAX_ENTRIES)
        self._max_text_length = query_text_max_length

    def command_started(self, trace: OperationTrace, sent: SentCommand) -> None:
        if self._max_text_length and not sent.is_sensitive:
            trace.notes[self] = sent.command

    def operation_ended(self, trace: OperationTrace, error: BaseException | None) -> None:
        seconds = trace.elapsed()
        if seconds < self.limit:
            return
        fields = {"operation": trace.summary, "durationMS": rounded_milliseconds(seconds)}
        fields |= {**_phase_durations(trace, seconds), "tries": trace.attempt_count, "commands": trace.command_count}
        if trace.address is not None:
            fields["server"] = address_text(trace.address)
        if error is not None:
            fields["error"] = error_attributes(error, 0)["exception.message"]
        command = trace.notes.pop(self, None)
        entry = {**fields, "moment": trace.started + seconds}
        if command is not None:
            entry["text"] = query_text(command, self._max_text_length)
        self.entries.append(entry)
        if slow_log.isEnabledFor(logging.WARNING):
            log(slow_log, _log_line(fields), {"message": "Slow operation", **fields}, logging.WARNING)


def _phase_durations(trace: OperationTrace, seconds: float) -> dict[str, float]:
    """Return the duration of each phase in milliseconds. "network" is an estimate from heartbeat round trip times."""
    reply_time = max(trace.exchange_time - trace.decoding_time, 0.0)
    network = min(trace.round_trip_time * trace.command_count, reply_time)
    measured_time = trace.selection_time + trace.check_out_time + trace.backoff_time + trace.exchange_time
    parts = {
        "selection": trace.selection_time,
        "checkOut": max(trace.check_out_time - trace.connecting_time, 0.0),
        "connecting": trace.connecting_time,
        "server": reply_time - network,
        "network": network,
        "decoding": trace.decoding_time,
        "backOff": trace.backoff_time,
        "driver": max(seconds - measured_time, 0.0),
    }
    return {f"{name}MS": rounded_milliseconds(part) for name, part in parts.items()}


def rounded_milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _log_line(fields: DocumentDict) -> str:
    parts = ", ".join(
        f"{label} {fields[f'{name}MS']:g}"
        for name, label in _PHASE_NAMES.items()
        if fields[f"{name}MS"] or name in ("server", "network")
    )
    server = f" on {fields['server']}" if "server" in fields else ""
    tries = f"; {fields['tries']} tries" if fields["tries"] > 1 else ""
    error = f"; failed: {fields['error']}" if "error" in fields else ""
    return f"Slow operation: {fields['operation']}{server} took {fields['durationMS']:g} ms: {parts}{tries}{error}"


_PHASE_NAMES = {
    "selection": "server selection",
    "checkOut": "check-out",
    "connecting": "connecting",
    "server": "server",
    "network": "network",
    "decoding": "decoding",
    "backOff": "back-off",
    "driver": "the driver itself",
}

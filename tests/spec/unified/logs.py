"""Collect the log messages of a client entity, and compare the messages with expected messages."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gevent

from tests.spec.unified.matching import Matcher, Mismatch

_LEVELS = {
    "emergency": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "notice": logging.INFO,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
}

# Fields of an error reply that are not in a redacted failure.
_UNREDACTED_FIELDS = ("errmsg", "errInfo")


class LogCollector(logging.Handler):
    """Log handler that collects the messages of one client entity.

    All clients share the loggers. :meth:`records_of_topology` excludes messages with the topology ID
    of another client. For messages without a topology ID, :meth:`pausing` stops the collection while
    another client runs an operation.
    """

    def __init__(self, levels: Mapping[str, str]) -> None:
        super().__init__()
        self._levels = {f"gmongo.{component}": _LEVELS[level] for component, level in levels.items()}
        self._previous_levels: dict[str, int] = {}
        self._records: list[logging.LogRecord] = []
        self._pausing_greenlet: Any = None
        self.recording = True

    def install(self) -> None:
        """Add the handler to the loggers."""
        for name, level in self._levels.items():
            logger = logging.getLogger(name)
            self._previous_levels[name] = logger.level
            logger.setLevel(level)
            logger.addHandler(self)

    def remove(self) -> None:
        """Remove the handler from the loggers, and restore their levels.

        A second call does nothing.
        """
        for name, level in self._previous_levels.items():
            logger = logging.getLogger(name)
            logger.setLevel(level)
            logger.removeHandler(self)
        self._previous_levels = {}

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Collect no messages of the current greenlet while the block runs an operation of another
        client.
        """
        self._pausing_greenlet = gevent.getcurrent()
        try:
            yield
        finally:
            self._pausing_greenlet = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.recording and self._pausing_greenlet is not gevent.getcurrent():
            self._records.append(record)

    def records_of_topology(self, topology_id: Any) -> list[logging.LogRecord]:
        """Return the log records with the topology ID `topology_id` or without topology ID."""
        return [record for record in self._records if _fields(record).get("topologyId", topology_id) == topology_id]


def check_logs(expected: Mapping[str, Any], records: list[logging.LogRecord], matcher: Matcher) -> None:
    """Compare the log messages of a client with an element of ``expectLogMessages``."""
    ignored = expected.get("ignoreMessages", [])
    actual = [record for record in records if not any(_matches(each, record, matcher) for each in ignored)]
    required = expected["messages"]
    text = "".join(f"\n  {record.name} {_fields(record)!s:.400}" for record in actual)
    for index, message in enumerate(required):
        if index >= len(actual):
            raise Mismatch(f"message {index} is missing: {message}. Recorded messages:{text}")
        try:
            _check(message, actual[index], matcher)
        except Mismatch as error:
            raise Mismatch(f"message {index}: {error}. Recorded messages:{text}")
    if len(actual) > len(required) and not expected.get("ignoreExtraMessages", False):
        raise Mismatch(f"{len(actual) - len(required)} surplus messages:{text}")


def _matches(expected: Mapping[str, Any], record: logging.LogRecord, matcher: Matcher) -> bool:
    try:
        _check(expected, record, matcher)
    except Mismatch:
        return False
    return True


def _check(expected: Mapping[str, Any], record: logging.LogRecord, matcher: Matcher) -> None:
    if record.name != f"gmongo.{expected['component']}" or record.levelno != _LEVELS[expected["level"]]:
        raise Mismatch(f"expected {expected}, was {record.name} {record.levelname} {_fields(record)!s:.300}")
    matcher.check(expected["data"], _fields(record), True, "data")
    if "failureIsRedacted" in expected:
        _check_redaction(expected["failureIsRedacted"], _fields(record).get("failure"))


def _check_redaction(redacted: bool, failure: Any) -> None:
    if failure is None:
        raise Mismatch("the message must have a failure")
    if redacted is any(word in str(failure) for word in _UNREDACTED_FIELDS):
        raise Mismatch(f"the failure must {'' if redacted else 'not '}be redacted, was {failure!r}")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return record.structured  # type: ignore[attr-defined]

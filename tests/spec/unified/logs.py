"""The log messages of a client: collecting them, and comparing them with what a test expects."""

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

# What a redacted failure may show.
_SHOWN_OF_REDACTED = ("errmsg", "errInfo")


class Logs(logging.Handler):
    """Collects what a client logs while it is installed.

    The loggers are the same for all clients: messages of topologies name theirs, and what other clients of the test
    are known to do meanwhile is told by :meth:`pausing`.

    :param levels: the least level by component, as in ``observeLogMessages``.
    """

    def __init__(self, levels: Mapping[str, str]) -> None:
        super().__init__()
        self._levels = {f"gmongo.{component}": _LEVELS[level] for component, level in levels.items()}
        self._before: dict[str, int] = {}
        self._records: list[logging.LogRecord] = []
        self._busy_elsewhere: Any = None
        self.recording = True

    def install(self) -> None:
        """Begin to listen."""
        for name, level in self._levels.items():
            logger = logging.getLogger(name)
            self._before[name] = logger.level
            logger.setLevel(level)
            logger.addHandler(self)

    def remove(self) -> None:
        """Stop listening. It may be called again."""
        for name, level in self._before.items():
            logger = logging.getLogger(name)
            logger.setLevel(level)
            logger.removeHandler(self)
        self._before = {}

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """While this greenlet lets another client do something."""
        self._busy_elsewhere = gevent.getcurrent()
        try:
            yield
        finally:
            self._busy_elsewhere = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.recording and self._busy_elsewhere is not gevent.getcurrent():
            self._records.append(record)

    def of_topology(self, topology_id: Any) -> list[logging.LogRecord]:
        """The records that are of the client whose topology has this identity."""
        return [record for record in self._records if _fields(record).get("topologyId", topology_id) == topology_id]


def check_logs(expected: Mapping[str, Any], records: list[logging.LogRecord], matcher: Matcher) -> None:
    """Compare what a client logged with an element of ``expectLogMessages``.

    :raises Mismatch: a message is missing, other than expected, or surplus.
    """
    ignored = expected.get("ignoreMessages", [])
    found = [record for record in records if not any(_matches(one, record, matcher) for one in ignored)]
    wanted = expected["messages"]
    shown = "".join(f"\n  {record.name} {_fields(record)!s:.400}" for record in found)
    for index, one in enumerate(wanted):
        if index >= len(found):
            raise Mismatch(f"message {index} is missing: {one}; there are{shown}")
        try:
            _check(one, found[index], matcher)
        except Mismatch as error:
            raise Mismatch(f"message {index}: {error}; there are{shown}")
    if len(found) > len(wanted) and not expected.get("ignoreExtraMessages", False):
        raise Mismatch(f"{len(found) - len(wanted)} surplus messages:{shown}")


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
    if redacted is any(word in str(failure) for word in _SHOWN_OF_REDACTED):
        raise Mismatch(f"the failure must {'' if redacted else 'not '}be redacted, was {failure!r}")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return record.structured  # type: ignore[attr-defined]

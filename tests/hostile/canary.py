"""Watches everything that leaves the driver, for secrets: logs, events, spans, metrics, the page and its tables, reprs,
exceptions with the locals of the driver's frames, warnings and pickles.
"""

from __future__ import annotations

import gc
import io
import logging
import pickle
import traceback
import warnings
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from unittest.mock import patch

import gevent
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.console import Console

import gmongo
from gmongo.status import process_state
from gmongo.status.terminal import Tables
from tests.support.listeners import HearsAll

DRIVER = str(Path(gmongo.__file__).parent)
TESTS = str(Path(__file__).parent.parent)
_OBSERVED = {
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_ENABLED": "true",
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_METRICS_ENABLED": "true",
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH": "100000",
}
_AROUND = 150


class Finding(NamedTuple):
    """A secret where it must not be."""

    channel: str
    secret: str
    text: str


def forms(secret: str) -> list[str]:
    """How a secret may be written: as it is, in hexadecimal, in base64 wherever it begins."""
    raw = secret.encode()
    inside = [b64encode(b"\0" * shift + raw).decode()[4:-4] for shift in range(3)]
    return [secret, raw.hex(), *inside]


class Canary:
    """Watches while it is entered.

    :param secrets: what must not be seen, by name.
    :ivar findings: where it was seen.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._forms = [(name, form) for name, secret in secrets.items() for form in forms(secret)]
        self.findings: set[Finding] = set()
        self._spans, self._metrics = InMemorySpanExporter(), InMemoryMetricReader()
        self._errors: list[BaseException] = []
        self._stack = ExitStack()
        self.heard: set[str] = set()  # channels that had anything at all

    # From its beginning to its end

    def __enter__(self) -> Canary:
        enter = self._stack.enter_context
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        meters = MeterProvider([self._metrics], shutdown_on_exit=False)
        enter(patch.dict("os.environ", _OBSERVED))
        enter(patch("opentelemetry.trace._TRACER_PROVIDER", tracers))
        enter(patch("gmongo._telemetry.metrics.get_meter_provider", lambda: meters))
        enter(patch("gmongo.monitoring.listeners._registered", [_Listener(self)]))
        caught = enter(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        self._stack.callback(lambda: [self.look("a warning", str(each.message)) for each in caught or ()])
        enter(patch("sys.stderr", _Text(self, "stderr")))
        self._log_to(_Handler(self))
        gc.collect()
        gc.freeze()  # what lives already is none of this one's: get_objects() leaves it out
        watcher = gevent.spawn(self._look_at_states)
        self._stack.callback(watcher.kill)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.look_at_state()
        self.look_at_objects()
        for span in self._spans.get_finished_spans():
            self.look("a span", span.to_json())
        data = self._metrics.get_metrics_data()
        self.look("metrics", "" if data is None else data.to_json())
        self._stack.close()

    def _log_to(self, handler: logging.Handler) -> None:
        for name in ("gmongo", "pymongocrypt", "asyncio"):
            logger = logging.getLogger(name)
            self._stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.DEBUG)
            logger.addHandler(handler)
            self._stack.callback(logger.removeHandler, handler)

    # What is looked at

    def look(self, channel: str, text: str) -> None:
        if text:
            self.heard.add(channel)
        for name, form in self._forms:
            at = text.find(form)
            if at >= 0:
                self.findings.add(Finding(channel, name, text[max(0, at - _AROUND) : at + len(form) + 20]))

    def look_at_state(self) -> None:
        """The page, as JSON and as tables."""
        state = process_state(query_text=True)
        self.look("the page", repr(state))
        terminal = io.StringIO()
        Console(file=terminal, width=300).print(Tables([state]))
        self.look("the terminal", terminal.getvalue())

    def _look_at_states(self) -> None:
        while True:
            self.look_at_state()
            gevent.sleep(0.05)

    def look_at_objects(self) -> None:
        """The reprs, strings and pickles of all objects of the driver's that live."""
        gc.collect()  # the application's own, such as an InsertOne, may be garbage behind an exception
        for each in gc.get_objects():
            module = getattr(type(each), "__module__", None)
            if not isinstance(module, str) or not module.startswith("gmongo") or "testing" in module:
                continue
            if isinstance(each, BaseException):
                self.error(each)
            for show in (repr, str):
                with suppress(Exception):
                    self.look(f"the {show.__name__} of a {type(each).__name__}", show(each))

    def error(self, error: BaseException) -> None:
        """An exception, with all that hangs on it."""
        for each in chain(error):
            name = type(each).__name__
            self.look(f"the text of {name}", f"{each} {each!r} {each.args!r}")
            self.look(f"the notes of {name}", " ".join(getattr(each, "__notes__", ())))
            self.look(f"the attributes of {name}", repr(vars(each)))
            with suppress(Exception):
                self.look(f"the pickle of {name}", pickle.dumps(each).decode("latin-1"))
            self.look("a traceback", "".join(traceback.format_exception(each)))
            for where, local, value in locals_of(each):
                with suppress(Exception):
                    self.look(f"the local {local} of {where}", repr(value))


def chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those behind it."""
    waiting, seen = [error], set()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        more = [each.__cause__, each.__context__, getattr(each, "cause", None), *getattr(each, "exceptions", ())]
        waiting += [one for one in more if isinstance(one, BaseException)]


def locals_of(error: BaseException) -> Iterator[tuple[str, str, Any]]:
    """The locals of the frames of the driver and of what it calls, as programs that report errors show them."""
    for frame, _line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith((TESTS, f"{DRIVER}/testing")):
            for name, value in frame.f_locals.items():
                yield f"{file.removeprefix(DRIVER + '/')}:{frame.f_code.co_name}", name, value


class _Listener(HearsAll):
    def __init__(self, canary: Canary) -> None:
        self._canary = canary

    def hear(self, event: Any) -> None:
        names = [name for name in dir(event) if not name.startswith("_")]
        values = {name: getattr(event, name) for name in names}
        self._canary.look(f"the event {type(event).__name__}", f"{event!r} {values!r}")
        if isinstance(values.get("reply"), BaseException):
            self._canary.error(values["reply"])


class _Handler(logging.Handler):
    def __init__(self, canary: Canary) -> None:
        super().__init__()
        self._canary = canary

    def emit(self, record: logging.LogRecord) -> None:
        text = logging.Formatter("%(message)s").format(record)
        self._canary.look(f"the log {record.name}", f"{text} {getattr(record, 'structured', '')!r} {record.args!r}")
        if record.exc_info and record.exc_info[1] is not None:
            self._canary.error(record.exc_info[1])


class _Text(io.StringIO):
    """A stream that is looked at as it is written."""

    def __init__(self, canary: Canary, channel: str) -> None:
        super().__init__()
        self._canary, self._channel = canary, channel

    def write(self, text: str) -> int:
        self._canary.look(self._channel, text)
        return len(text)

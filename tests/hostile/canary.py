"""Search for secrets in all output of the driver.

The output is logs, events, spans, metrics, the status page, terminal tables, reprs, warnings, pickles,
standard error, and exceptions with local variables.
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
from gmongo.status.terminal import overview
from tests.support.listeners import ForwardingListener

DRIVER_FOLDER = str(Path(gmongo.__file__).parent)
TESTS_FOLDER = str(Path(__file__).parent.parent)
_TELEMETRY_VARIABLES = {
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_ENABLED": "true",
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_METRICS_ENABLED": "true",
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH": "100000",
}
_CONTEXT_LENGTH = 150  # characters of the output before a secret


class Finding(NamedTuple):
    """A secret that an output channel contains.

    :ivar channel: the kind of output, such as ``metrics``.
    :ivar secret_name: the name of the secret.
    :ivar text: the output around the secret.
    """

    channel: str
    secret_name: str
    text: str


def encodings_of(secret: str) -> list[str]:
    """Return the texts that disclose a secret: plain, hexadecimal, and base64 at each of three byte
    offsets.
    """
    raw = secret.encode()
    base64_texts = [b64encode(b"\0" * shift + raw).decode()[4:-4] for shift in range(3)]
    return [secret, raw.hex(), *base64_texts]


class Canary:
    """Context manager that searches the output of the driver for secrets.

    :param secrets: the secrets, keyed by their names.
    :ivar findings: the secrets that were found in the output.
    :ivar used_channels: the output channels to which the driver has written any text.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._encodings = [(name, encoding) for name, secret in secrets.items() for encoding in encodings_of(secret)]
        self.findings: set[Finding] = set()
        self._span_exporter, self._metric_reader = InMemorySpanExporter(), InMemoryMetricReader()
        self._stack = ExitStack()
        self.used_channels: set[str] = set()

    def __enter__(self) -> Canary:
        enter = self._stack.enter_context
        tracer_provider = TracerProvider(shutdown_on_exit=False)
        tracer_provider.add_span_processor(SimpleSpanProcessor(self._span_exporter))
        meter_provider = MeterProvider([self._metric_reader], shutdown_on_exit=False)
        enter(patch.dict("os.environ", _TELEMETRY_VARIABLES))
        enter(patch("opentelemetry.trace._TRACER_PROVIDER", tracer_provider))
        enter(patch("gmongo._telemetry.metrics.get_meter_provider", lambda: meter_provider))
        enter(patch("gmongo.monitoring.listeners._registered_listeners", [_SearchingListener(self)]))
        caught = enter(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        self._stack.callback(lambda: [self.search("a warning", str(each.message)) for each in caught or ()])
        enter(patch("sys.stderr", _SearchedStream(self, "stderr")))
        self._add_log_handler(_SearchingHandler(self))
        gc.collect()
        # `gc.get_objects` omits frozen objects, so the canary searches only objects created later.
        gc.freeze()
        watcher = gevent.spawn(self._search_state_repeatedly)
        self._stack.callback(watcher.kill)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.search_state()
        self.search_objects()
        for span in self._span_exporter.get_finished_spans():
            self.search("a span", span.to_json())
        data = self._metric_reader.get_metrics_data()
        self.search("metrics", "" if data is None else data.to_json())
        self._stack.close()

    def _add_log_handler(self, handler: logging.Handler) -> None:
        for name in ("gmongo", "pymongocrypt", "asyncio"):
            logger = logging.getLogger(name)
            self._stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.DEBUG)
            logger.addHandler(handler)
            self._stack.callback(logger.removeHandler, handler)

    def search(self, channel: str, text: str) -> None:
        if text:
            self.used_channels.add(channel)
        for name, encoding in self._encodings:
            at = text.find(encoding)
            if at >= 0:
                self.findings.add(Finding(channel, name, text[max(0, at - _CONTEXT_LENGTH) : at + len(encoding) + 20]))

    def search_state(self) -> None:
        """Search the state of the driver, and the tables that show the state in a terminal."""
        state = process_state(query_text=True)
        self.search("the page", repr(state))
        terminal = io.StringIO()
        Console(file=terminal, width=300).print(overview([state], 300))
        self.search("the terminal", terminal.getvalue())

    def _search_state_repeatedly(self) -> None:
        while True:
            self.search_state()
            gevent.sleep(0.05)

    def search_objects(self) -> None:
        """Search the repr and the str of each living driver object, and all parts of each driver
        exception.
        """
        # Release unreferenced objects first, because the search concerns only living objects.
        gc.collect()
        for each in gc.get_objects():
            module = getattr(type(each), "__module__", None)
            if not isinstance(module, str) or not module.startswith("gmongo") or "testing" in module:
                continue
            if isinstance(each, BaseException):
                self.search_error(each)
            for show in (repr, str):
                with suppress(Exception):
                    self.search(f"the {show.__name__} of a {type(each).__name__}", show(each))

    def search_error(self, error: BaseException) -> None:
        """Search the texts, attributes and frames of an exception and of its causes."""
        for each in error_chain(error):
            name = type(each).__name__
            self.search(f"the text of {name}", f"{each} {each!r} {each.args!r}")
            self.search(f"the notes of {name}", " ".join(getattr(each, "__notes__", ())))
            self.search(f"the attributes of {name}", repr(vars(each)))
            with suppress(Exception):
                self.search(f"the pickle of {name}", pickle.dumps(each).decode("latin-1"))
            self.search("a traceback", "".join(traceback.format_exception(each)))
            for where, local, value in locals_of(each):
                with suppress(Exception):
                    self.search(f"the local {local} of {where}", repr(value))


def error_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, and all linked exceptions: causes, contexts, and elements of groups."""
    remaining, seen_ids = [error], set()
    while remaining:
        each = remaining.pop()
        if each is None or id(each) in seen_ids:
            continue
        seen_ids.add(id(each))
        yield each
        linked = [each.__cause__, each.__context__, getattr(each, "cause", None), *getattr(each, "exceptions", ())]
        remaining += [linked_error for linked_error in linked if isinstance(linked_error, BaseException)]


def locals_of(error: BaseException) -> Iterator[tuple[str, str, Any]]:
    """Yield frame, name and value of each local variable in a traceback, except in frames of tests
    and of ``gmongo.testing``. Error reporting services transmit local variables.
    """
    for frame, _line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith((TESTS_FOLDER, f"{DRIVER_FOLDER}/testing")):
            for name, value in frame.f_locals.items():
                yield f"{file.removeprefix(DRIVER_FOLDER + '/')}:{frame.f_code.co_name}", name, value


class _SearchingListener(ForwardingListener):
    def __init__(self, canary: Canary) -> None:
        self._canary = canary

    def handle(self, event: Any) -> None:
        names = [name for name in dir(event) if not name.startswith("_")]
        values = {name: getattr(event, name) for name in names}
        self._canary.search(f"the event {type(event).__name__}", f"{event!r} {values!r}")
        if isinstance(values.get("reply"), BaseException):
            self._canary.search_error(values["reply"])


class _SearchingHandler(logging.Handler):
    def __init__(self, canary: Canary) -> None:
        super().__init__()
        self._canary = canary

    def emit(self, record: logging.LogRecord) -> None:
        text = logging.Formatter("%(message)s").format(record)
        self._canary.search(f"the log {record.name}", f"{text} {getattr(record, 'structured', '')!r} {record.args!r}")
        if record.exc_info and record.exc_info[1] is not None:
            self._canary.search_error(record.exc_info[1])


class _SearchedStream(io.StringIO):
    """Text stream that searches each written text for secrets."""

    def __init__(self, canary: Canary, channel: str) -> None:
        super().__init__()
        self._canary, self._channel = canary, channel

    def write(self, text: str) -> int:
        self._canary.search(self._channel, text)
        return len(text)

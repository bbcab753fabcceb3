"""Tests of the comparison on engines: detected differences, reasons for skipped rows, and missing engines."""

from __future__ import annotations

import signal
import socketserver
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymongo
import pytest

from gmongo.testing import DeploymentProcess
from tests.differential.call_runner import GMONGO, PYMONGO, CallRunner, Driver, Outcome, _fault_of_unacknowledged
from tests.differential.comparable_values import RaisedError
from tests.differential.fault_attribution import Attribution, Verdict, attribute_difference
from tests.support.cases import with_cases

from .engine import Engine, MissingEngineError, Server, run

_ROW = "c.find_one({'_id': 1})"


@pytest.fixture(scope="module")
def simulated() -> Iterator[CallRunner]:
    """Yield a call runner on a simulated deployment.

    The deployment replaces an engine in some tests, and MongoDB in other tests.
    """
    with DeploymentProcess("--replica-set", "1") as deployment:
        runner = CallRunner(pymongo.uri_parser.parse_uri(deployment.uri)["nodelist"][0], "an engine", call_timeout=10)
        yield runner
        runner.close()


def _attribute_row(runner: CallRunner, source: str) -> Attribution:
    return attribute_difference(runner, source, lambda: runner)


@with_cases
def test_row_is_skipped_with_reason(
    simulated: CallRunner, source: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if reason == "the server does not reply":
            patch.setattr(simulated, "_call_timeout", 1)
        first = _attribute_row(simulated, source)
    assert first.verdict is Verdict.SKIPPED
    assert first.reason.startswith(reason)
    second = _attribute_row(simulated, _ROW)
    assert (second.verdict, second.reason) == (Verdict.SAME, "")


def _outcome(part: Any) -> Outcome:
    returned, error = (None, part) if isinstance(part, RaisedError) else (part, None)
    return Outcome(returned, error, [], None, "no sessions")


@with_cases
def test_differing_results_on_engine_are_compared_with_results_on_mongodb(
    engine_results: list[Any], mongodb_results: list[Any], reason: str
) -> None:
    class ScriptedCallRunner:
        unsupported_features: frozenset[str] = frozenset()

        def __init__(self, theirs: Any, ours: Any) -> None:
            self._outcomes = {PYMONGO: _outcome(theirs), GMONGO: _outcome(ours)}

        def clear_unsupported_features(self) -> None:
            pass

        def run_call(self, driver: Driver, source: str) -> Outcome:
            return self._outcomes[driver]

        def compare(self, source: str) -> tuple[Outcome, Outcome]:
            return self._outcomes[PYMONGO], self._outcomes[GMONGO]

    simulation: Any = ScriptedCallRunner(*mongodb_results)
    runner: Any = ScriptedCallRunner(*engine_results)
    attribution = attribute_difference(
        runner, "list_collections(", lambda: simulation
    )  # `differences.jsonl` permits the difference of this call
    assert (attribution.verdict, attribution.reason) == (Verdict.SKIPPED if reason else Verdict.DIFFERENT, reason)


@pytest.mark.parametrize("replies", [True, False])
def test_reply_or_close_after_unacknowledged_command_is_fault_of_server(replies: bool) -> None:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if replies:
                length, number, *_ = struct.unpack("<iiii", self.rfile.read(16))
                self.rfile.read(length - 16)
                self.wfile.write(struct.pack("<iiii", 16, 1, number, 2013))

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        fault = _fault_of_unacknowledged(server.server_address)  # type: ignore[arg-type]
        assert fault.startswith("the server replies" if replies else "the server closes")


def test_unacknowledged_write_on_simulated_server_has_no_fault(simulated: CallRunner) -> None:
    source = "c.with_options(write_concern=WriteConcern(w=0)).insert_one({}).acknowledged"
    assert _attribute_row(simulated, source).reason == ""


@pytest.mark.long
def test_hung_server_is_restarted_once(tmp_path: Path) -> None:
    def command(built: Path, data: Path, port: int) -> list[str]:
        return [sys.executable, "-m", "gmongo.testing", "--port", str(port)]

    with Server(Engine("simulated", "1", "python3", lambda folder: None, command), tmp_path, tmp_path) as server:
        assert not server.restart_if_hung()
        server.signal(signal.SIGSTOP)
        assert server.restart_if_hung()
        assert not server.restart_if_hung()


def _fail_to_build(folder: Path) -> None:
    run(sys.executable, "-c", "import sys; sys.exit('no network')", cwd=folder)


@pytest.mark.parametrize(
    ("program", "message"),
    [("sh", "no network"), ("no-such-builder", "example is built with no-such-builder, which is not on the path")],
)
def test_failed_build_or_missing_build_program_raises_error_at_each_call(
    program: str, message: str, tmp_path: Path
) -> None:
    engine = Engine("example", "1", program, _fail_to_build, lambda *_: [])
    for _attempt in range(2):
        with pytest.raises(MissingEngineError, match=message):
            engine.build_once(tmp_path)

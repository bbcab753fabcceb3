"""The judge finds a seeded difference, and skips a row for a reason that is real; an engine is missing by name."""

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
from tests.differential.judge import Judgement, Verdict, judge
from tests.differential.portrait import Raised
from tests.differential.scene import GMONGO, PYMONGO, Driver, Outcome, Scene, _fault_of_unacknowledged

from .engine import Engine, MissingEngineError, Server, run

_ROW = "c.find_one({'_id': 1})"


@pytest.fixture(scope="module")
def known() -> Iterator[Scene]:
    """A simulated deployment in the place of an engine, and of MongoDB."""
    with DeploymentProcess("--replica-set", "1") as deployment:
        scene = Scene(pymongo.uri_parser.parse_uri(deployment.uri)["nodelist"][0], "an engine", patience=10)
        yield scene
        scene.close()


def _judged(scene: Scene, source: str) -> Judgement:
    return judge(scene, source, lambda: scene)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raised_by(lambda: db.command('nosuch'))", "CommandNotFound (59): no such command: 'nosuch'"),
        ("raised_by(lambda: fail([], mode='nonsense'))", "fail points (9)"),
        ("__import__('random').random()", "it answers PyMongo twice in two ways"),
        ("db.create_collection('k', capped=True, size=9999).insert_one({})\n"
         "for _ in db.k.find(cursor_type=CursorType.TAILABLE_AWAIT):\n    while True: db.command('ping')\n"
         "1", "it does not answer"),
    ],
    ids=["a command", "fail points", "chance", "silence"],
)  # fmt: skip
def test_a_row_is_skipped_for_a_reason_that_the_server_gives(
    known: Scene, source: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if reason == "it does not answer":
            patch.setattr(known, "_given_patience", 1)
        found = _judged(known, source)
    assert found.verdict is Verdict.SKIPPED
    assert found.reason.startswith(reason)
    again = _judged(known, _ROW)  # and the next row is judged without it
    assert (again.verdict, again.reason) == (Verdict.SAME, "")


_LOST = Raised(("AutoReconnect", "ConnectionFailure", "PyMongoError"), (), ())
_LACKING = Raised(("ConfigurationError", "PyMongoError"), (), ())
_REFUSED, _BAD = Raised(("OperationFailure", "PyMongoError"), (), ()), Raised(("TypeError",), (), ())


def _outcome(part: Any) -> Outcome:
    returned, error = (None, part) if isinstance(part, Raised) else (part, None)
    return Outcome(returned, error, [], None, "no sessions")


@pytest.mark.parametrize(
    ("here", "there", "reason"),
    [
        ((_LOST, 1), (1, 1), "it breaks off PyMongo's connection, and answers gmongo as MongoDB does"),
        ((1, _LOST), (1, 1), ""),
        ((1, 2), (1, 1), ""),
        ((1, _BAD), (_REFUSED, _BAD), "it takes from PyMongo what MongoDB refuses, and gmongo does not send"),
        ((1, _BAD), (_REFUSED, 1), ""),
        ((_LACKING, 1), (1, 1), "it does not have what PyMongo asks of it first: no sessions"),
        ((_LACKING, 2), (1, 1), ""),
        ((Raised(("KeyError",), (), ()), 1), (1, 1), "PyMongo stumbles over its answer (KeyError)"),
        ((Raised(("KeyError",), (), ()), 1), (1, 2), "PyMongo stumbles over its answer (KeyError)"),
    ],
)
def test_a_server_that_answers_the_drivers_otherwise_is_held_beside_mongodb(
    here: tuple[Any, Any], there: tuple[Any, Any], reason: str
) -> None:
    class Played:
        unknown: frozenset[str] = frozenset()

        def __init__(self, theirs: Any, ours: Any) -> None:
            self._outcomes = {PYMONGO: _outcome(theirs), GMONGO: _outcome(ours)}

        def forget(self) -> None:
            pass

        def play(self, driver: Driver, source: str) -> Outcome:
            return self._outcomes[driver]

        def compare(self, source: str) -> tuple[Outcome, Outcome]:
            return self._outcomes[PYMONGO], self._outcomes[GMONGO]

    simulation: Any = Played(*there)
    scene: Any = Played(*here)
    found = judge(scene, "list_collections(", lambda: simulation)  # whose bad arguments gmongo refuses
    assert (found.verdict, found.reason) == (Verdict.SKIPPED if reason else Verdict.DIFFERENT, reason)


@pytest.mark.parametrize("answers", [True, False])
def test_a_server_is_asked_what_it_does_with_unacknowledged_commands(answers: bool) -> None:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if answers:
                length, number, *_ = struct.unpack("<iiii", self.rfile.read(16))
                self.rfile.read(length - 16)
                self.wfile.write(struct.pack("<iiii", 16, 1, number, 2013))

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert _fault_of_unacknowledged(server.server_address).startswith("it answers" if answers else "it closes")  # type: ignore[arg-type]


def test_a_good_server_has_no_such_fault(known: Scene) -> None:
    assert _judged(known, "c.with_options(write_concern=WriteConcern(w=0)).insert_one({}).acknowledged").reason == ""


@pytest.mark.long
def test_a_server_that_hangs_is_started_anew(tmp_path: Path) -> None:
    def command(built: Path, data: Path, port: int) -> list[str]:
        return [sys.executable, "-m", "gmongo.testing", "--port", str(port)]

    with Server(Engine("simulated", "1", "python3", lambda folder: None, command), tmp_path, tmp_path) as server:
        assert not server.revive()
        server.signal(signal.SIGSTOP)
        assert server.revive()
        assert not server.revive()


def test_an_engine_whose_builder_is_missing_is_left_out_by_name(tmp_path: Path) -> None:
    engine = Engine("marvel", "1", "no-such-builder", lambda folder: None, lambda *_: [])
    with pytest.raises(MissingEngineError, match="marvel is built with no-such-builder, which is not on the path"):
        engine.built(tmp_path)


def test_an_engine_that_cannot_be_built_is_left_out_with_the_reason(tmp_path: Path) -> None:
    program = "import sys; sys.exit('no network')"
    engine = Engine("marvel", "1", "sh", lambda folder: run(sys.executable, "-c", program, cwd=folder), lambda *_: [])
    for _time in range(2):  # nothing that failed is kept
        with pytest.raises(MissingEngineError, match="no network"):
            engine.built(tmp_path)

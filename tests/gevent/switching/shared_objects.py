"""Scenarios in which two greenlets use one object. The second greenlet starts at a switch of the
first greenlet.

At most one of the two calls may raise InvalidOperation. The ``check_*`` functions check the results
of the calls. ``tests/gevent/test_shared_cursors.py`` checks cursors and change streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
from bson import Timestamp

from gmongo.errors import InvalidOperation
from tests.gevent.switching.harness import Scenario, ScenarioRun
from tests.gevent.switching.operations import (
    CONTENT,
    OBJECT_FACTORIES,
    SwitchingFile,
    restore_documents,
    update_in_transaction,
)
from tests.support.wait import becomes_true

Call = Callable[[Any], Any]
REJECTED = "rejected"


class SharedObject(Scenario):
    """Two calls that concurrently use one object."""

    def __init__(self, name: str, object_name: str, first: Call, second: Call, check: Callable[..., None]) -> None:
        self.name = name
        self._object_name, self._first, self._second, self._check_result = object_name, first, second, check

    def prepare(self, run_state: ScenarioRun) -> None:
        restore_documents(run_state.client)
        run_state.kept["object"] = OBJECT_FACTORIES[self._object_name](run_state)

    def run_operation(self, run_state: ScenarioRun) -> Any:
        run_state.kept["first"] = _call_or_reject(self._first, run_state.kept["object"])

    def start_second(self, run_state: ScenarioRun) -> None:
        run_state.others.append(gevent.spawn(_call_or_reject, self._second, run_state.kept["object"]))

    def finish(self, run_state: ScenarioRun) -> None:
        second = run_state.others[0].get() if run_state.others else REJECTED
        assert run_state.error is None, repr(run_state.error)
        first = run_state.kept["first"]
        assert first != REJECTED or second != REJECTED, "both calls were rejected"
        self._check_result(run_state, run_state.kept.pop("object"), first, second)


def _call_or_reject(call: Call, shared: Any) -> Any:
    try:
        return call(shared)
    except InvalidOperation:
        return REJECTED


def check_file(run_state: ScenarioRun, file: Any, first: Any, second: Any) -> None:
    """Check that the file contains exactly the bytes of the successful calls, or that no part of the
    file exists.
    """
    if not file.closed:
        file.close()
    database = run_state.client.operations
    chunks = [chunk["data"] for chunk in database.fs.chunks.find({"files_id": 9}).sort("n")]
    description = database.fs.files.find_one(9)
    if description is None:
        assert becomes_true(lambda: not database.fs.chunks.count_documents({"files_id": 9})), "chunks are left"
        return
    content = b"".join(chunks)
    assert len(content) == description["length"]
    pieces = [piece for piece, result in ((CONTENT, first), (b"abcdef", second)) if result == piece]
    assert content in (b"".join(pieces), b"".join(reversed(pieces))), content


def check_bytes(run_state: ScenarioRun, file: Any, first: Any, second: Any) -> None:
    pieces = [each for each in (first, second) if each != REJECTED]
    assert sorted(b"".join(pieces) + file.read()) == sorted(CONTENT), pieces


def check_session(run_state: ScenarioRun, session: Any, first: Any, second: Any) -> None:
    """Check that the session is usable, and that no transaction was partly committed."""
    work = run_state.client.operations.work
    numbers = [work.find_one({"_id": number})["n"] for number in (2, 3)]
    assert numbers in ([2, 3], [10, 10]), numbers
    if first == 2:
        assert numbers == [10, 10]
    if not session.has_ended:
        if session.in_transaction:
            session.abort_transaction()
        assert update_in_transaction(session) in (0, 2)
        session.end_session()


def take_file_ids(cursor: Any) -> list[Any]:
    return [file._id for file in cursor]


def check_file_ids(run_state: ScenarioRun, cursor: Any, first: Any, second: Any) -> None:
    taken_ids = [each for part in (first, second) if part != REJECTED for each in part or ()]
    assert len(set(taken_ids)) == len(taken_ids), taken_ids
    cursor.close()


def write_call(data: bytes) -> Call:
    def call(file: Any) -> bytes:
        file.write(SwitchingFile(data))
        return data

    return call


def in_session(call: Callable[[Any, Any], Any]) -> Call:
    return lambda session: call(session.client.operations.work, session)


UPLOAD_CALLS: dict[str, Call] = {
    "write": write_call(b"abcdef"),
    "close": lambda file: file.close(),
    "abort": lambda file: file.abort(),
    "writelines": lambda file: file.writelines([]),
}
READ_CALLS: dict[str, Call] = {
    "read": lambda file: file.read(3),
    "readchunk": lambda file: file.readchunk(),
    "readline": lambda file: file.readline(),
    "next": lambda file: next(file),
}
SESSION_CALLS: dict[str, Call] = {
    "find": in_session(lambda work, session: len(list(work.find({}, session=session, batch_size=2)))),
    "insert": in_session(lambda work, session: work.insert_one({"_id": 9}, session=session).inserted_id),
    "start_transaction": lambda session: session.start_transaction() and None,
    "commit_transaction": lambda session: session.commit_transaction(),
    "abort_transaction": lambda session: session.abort_transaction(),
    "end_session": lambda session: session.end_session(),
    "with_transaction": update_in_transaction,
    "advance_operation_time": lambda session: session.advance_operation_time(Timestamp(1, 1)),
}
SHARED_OBJECTS = [
    *(
        SharedObject(f"GridIn.write and {name}", "upload", write_call(CONTENT), call, check_file)
        for name, call in UPLOAD_CALLS.items()
    ),
    *(
        SharedObject(f"GridIn.{first} and {name}", "stored upload", UPLOAD_CALLS[first], call, lambda *_: None)
        for name, call in UPLOAD_CALLS.items()
        for first in ("close", "abort")
    ),
    *(
        SharedObject(f"GridOut.{first} and {name}", "download", READ_CALLS[first], call, check_bytes)
        for name, call in READ_CALLS.items()
        for first in ("read", "readline")
    ),
    *(
        SharedObject(f"ClientSession.{first} and {name}", "session", SESSION_CALLS[first], call, check_session)
        for name, call in SESSION_CALLS.items()
        for first in ("with_transaction", "find")
    ),
    *(
        SharedObject(f"transaction {first} and {name}", "transaction", SESSION_CALLS[first], call, check_session)
        for name, call in SESSION_CALLS.items()
        for first in ("commit_transaction", "abort_transaction", "end_session", "find")
    ),
    SharedObject("file cursor and iteration", "file cursor", take_file_ids, take_file_ids, check_file_ids),
    SharedObject("file cursor and close", "file cursor", take_file_ids, lambda cursor: cursor.close(), check_file_ids),
]

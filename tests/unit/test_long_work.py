"""Tests of long computations, and of the sleep of background greenlets.

`Wakeup` ends the sleep of a background greenlet. Another native thread may set a wakeup at any
moment.

Long computations call ``LongWork.checkpoint`` after each piece. Other greenlets may run at a
checkpoint.
"""

from __future__ import annotations

import _socket
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import bson
import gevent
import pytest
from bson.codec_options import DEFAULT_CODEC_OPTIONS

from gmongo import _background
from gmongo._background import LongWork, RestartingGreenlet, Wakeup, spawn_for, with_checkpoints
from gmongo._encryption.operation import command_document
from gmongo.engines.read_ahead import ReadAhead
from gmongo.operations.client_bulk import USUAL_LIMITS, Writes
from gmongo.operations.models import InsertOne
from gmongo.operations.write import WriteBatch
from gmongo.wire.checksum import crc32c
from gmongo.wire.message import encode_op_msg
from gmongo.wire.reply import Batch
from gmongo.wire.tls import TlsTransport
from gmongo.wire.transport import Transport

DOCUMENTS = [bson.encode({"_id": number}) for number in range(50)]
KIB = 1024


def batch_of_50_documents() -> Batch:
    return Batch(bson.encode({str(n): {"_id": n} for n in range(50)}), DEFAULT_CODEC_OPTIONS)


def send_over_tcp(buffers: list[bytes]) -> None:
    here, there = _socket.socketpair()
    here.setblocking(False)
    here.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, 2**20)
    transport = Transport(here, True)
    transport.send(buffers)
    transport.close()
    there.close()


def send_over_tls(buffers: list[bytes]) -> None:
    here, there = _socket.socketpair()
    transport = TlsTransport(here, True, SimpleNamespace(), "h")  # type: ignore[arg-type]
    written: list[bytes] = []
    transport._engine = SimpleNamespace(write=lambda data: written.append(bytes(data)) or len(data))  # type: ignore[assignment, func-returns-value]
    transport.send(buffers)
    assert b"".join(written) == b"".join(buffers)
    assert max(map(len, written)) <= 64 * KIB
    transport.close()
    there.close()


def decode_ahead(reply: Any) -> None:
    read_ahead: Any = SimpleNamespace(_arrived_replies=[(reply, 1)], _raw=False)
    ReadAhead._decode(read_ahead, reply, 1)


def insert_message(documents: Iterable[bytes]) -> list[bytes]:
    return encode_op_msg(1, 0, bson.encode({"insert": "c"}), [("documents", list(documents))])


@pytest.mark.parametrize(
    ("computation", "checkpoint_count"),
    [
        (lambda: crc32c(bytes(20 * KIB)), 3),
        (lambda: crc32c(b""), 0),
        (lambda: [list(with_checkpoints(range(count))) for count in (96, 97)], 7),
        (lambda: batch_of_50_documents().count(), 50),
        (lambda: batch_of_50_documents().raw(), 50),
        (lambda: command_document(insert_message(DOCUMENTS)), 50),
        (lambda: decode_ahead(SimpleNamespace(batch=batch_of_50_documents())), 1),
        (lambda: Writes([InsertOne({}, "d.c")] * 50, DEFAULT_CODEC_OPTIONS).take(USUAL_LIMITS, 0), 50),
        (lambda: WriteBatch.free(SimpleNamespace(_encoded=[b""] * 3000)), 3),  # type: ignore[arg-type]
        (lambda: send_over_tcp([bytes(40 * KIB)] * 4), 2),
        (lambda: send_over_tcp([bytes(KIB)]), 0),
        (lambda: send_over_tls([bytes(200 * KIB)]), 4),
        (lambda: send_over_tls([bytes(64 * KIB + 1)]), 2),
        (lambda: send_over_tls([bytes(64 * KIB)]), 0),
        (lambda: send_over_tls([bytes(40 * KIB)] * 4), 4),
    ],
)
def test_long_computation_passes_checkpoint_after_each_piece(
    monkeypatch: pytest.MonkeyPatch, computation: Callable[[], Any], checkpoint_count: int
) -> None:
    checkpoint_calls: list[LongWork] = []
    monkeypatch.setattr(LongWork, "checkpoint", lambda self: checkpoint_calls.append(self))
    computation()
    assert len(checkpoint_calls) == checkpoint_count


def test_computation_with_checkpoints_has_complete_result() -> None:
    assert batch_of_50_documents().count() == 50
    assert batch_of_50_documents().raw() == b"".join(DOCUMENTS)
    decoded = bson.decode(command_document(insert_message(DOCUMENTS)))
    assert decoded == {"insert": "c", "documents": [{"_id": number} for number in range(50)]}


def test_checkpoint_sleeps_with_timer_after_more_than_two_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    times, pauses = iter([0, 0.002, 0.0021, 8, 8.001]), list[float]()
    monkeypatch.setattr(_background._clock, "monotonic", lambda: next(times))
    monkeypatch.setattr(_background, "sleep", pauses.append)
    loop = SimpleNamespace(approx_timer_resolution=0.001)  # the resolution of libuv
    monkeypatch.setattr(_background, "get_hub", lambda: SimpleNamespace(loop=loop))
    work = LongWork()
    for _ in range(3):
        work.checkpoint()
    assert pauses == [0.001]


def test_wakeup_set_during_registration_of_sleeper_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    wakeup = Wakeup()

    def set_by_another_thread() -> object:
        wakeup.set()  # This call requests no callback of the event loop, because no greenlet sleeps yet.
        return gevent.getcurrent()

    monkeypatch.setattr(_background, "getcurrent", set_by_another_thread)
    with gevent.Timeout(5):
        assert wakeup.sleep(None)


def test_wakeup_callback_after_end_of_sleep_wakes_no_greenlet() -> None:
    wakeup = Wakeup()
    sleeper = gevent.spawn(wakeup.sleep, None)
    gevent.sleep(0)
    wakeup.set()
    wakeup.set()  # This call requests a second callback, which may run after the end of the sleep.
    assert sleeper.get(timeout=5)
    gevent.sleep(0)
    assert sleeper.ready()


def test_sleep_ends_after_seconds_or_after_set() -> None:
    wakeup = Wakeup()
    with gevent.Timeout(5):
        assert not wakeup.sleep(0.001) and not wakeup.sleep(0)
        wakeup.set()
        assert wakeup.sleep(None) and not wakeup.sleep(0.001)  # `set` ends only one sleep
        wakeup.set()
        wakeup.clear()
        assert not wakeup.sleep(0.001)


def test_background_greenlet_repeats_step_until_negative_pause() -> None:
    owner, pauses = set[int](), [0, 0.001, -1]
    background = spawn_for(owner, Wakeup(), lambda _owner: pauses.pop(0))
    background.greenlet.join(timeout=5)
    assert background.ended and not pauses


def test_background_work_restarts_one_second_after_exception(virtual_time: Any, caplog: Any) -> None:
    def work() -> None:
        starts.append(_background._clock.monotonic())
        assert len(starts) == 2, "my fault"

    starts: list[float] = []
    background = RestartingGreenlet(work)
    background.start()
    gevent.sleep(1.1)
    assert background.ended and starts[1] - starts[0] == pytest.approx(1)
    assert "background work was interrupted by an exception" in caplog.text and "my fault" in caplog.text

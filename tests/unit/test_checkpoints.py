"""Long work passes a checkpoint after each piece, where other greenlets may run."""

from __future__ import annotations

import _socket
import struct
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import bson
import pytest
from bson.codec_options import DEFAULT_CODEC_OPTIONS

from gmongo._background import LongWork, with_checkpoints
from gmongo._encryption.encoding import one_document
from gmongo.wire.checksum import crc32c
from gmongo.wire.message import encode_op_msg
from gmongo.wire.reply import Batch
from gmongo.wire.tls import TlsTransport
from gmongo.wire.transport import Transport

DOCUMENTS = [bson.encode({"_id": number}) for number in range(50)]
KIB = 1024


def batch() -> Batch:
    return Batch(bson.encode({str(n): {"_id": n} for n in range(50)}), DEFAULT_CODEC_OPTIONS)


def send_plain(buffers: list[bytes]) -> None:
    here, there = _socket.socketpair()
    here.setblocking(False)
    here.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, 2**20)
    transport = Transport(here, True)
    transport.send(buffers)
    transport.close()
    there.close()


def send_encrypted(buffers: list[bytes]) -> None:
    here, there = _socket.socketpair()
    transport = TlsTransport(here, True, SimpleNamespace(), "h")  # type: ignore[arg-type]
    written: list[bytes] = []
    transport._engine = SimpleNamespace(write=lambda data: written.append(bytes(data)) or len(data))  # type: ignore[assignment, func-returns-value]
    transport.send(buffers)
    assert b"".join(written) == b"".join(buffers)
    assert max(map(len, written)) <= 64 * KIB
    transport.close()
    there.close()


def message(documents: Iterable[bytes]) -> list[bytes]:
    return encode_op_msg(1, 0, bson.encode({"insert": "c"}), [("documents", list(documents))])


@pytest.mark.parametrize(
    ("work", "times"),
    [
        (lambda: crc32c(bytes(20 * KIB)), 3),
        (lambda: crc32c(b""), 0),
        (lambda: list(with_checkpoints(range(97))), 4),
        (lambda: batch().count(), 50),
        (lambda: batch().raw(), 50),
        (lambda: one_document(message(DOCUMENTS)), 50),
        (lambda: send_plain([bytes(40 * KIB)] * 4), 2),
        (lambda: send_plain([bytes(KIB)]), 0),
        (lambda: send_encrypted([bytes(200 * KIB)]), 4),
        (lambda: send_encrypted([bytes(64 * KIB + 1)]), 2),
        (lambda: send_encrypted([bytes(64 * KIB)]), 0),
        (lambda: send_encrypted([bytes(40 * KIB)] * 4), 4),
    ],
)
def test_each_piece_passes_checkpoint(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any], times: int) -> None:
    passed: list[LongWork] = []
    monkeypatch.setattr(LongWork, "checkpoint", lambda self: passed.append(self))
    work()
    assert len(passed) == times


def test_work_in_pieces_has_complete_result() -> None:
    assert batch().count() == 50
    assert batch().raw() == b"".join(DOCUMENTS)
    found = bson.decode(one_document(message(DOCUMENTS)))
    assert found == {"insert": "c", "documents": [{"_id": number} for number in range(50)]}
    assert crc32c(b"a" * 20 * KIB) == crc32c(b"a" * 12 * KIB, crc32c(b"a" * 8 * KIB))
    assert struct.pack(">I", crc32c(b"123456789")) == b"\xe3\x06\x92\x83"

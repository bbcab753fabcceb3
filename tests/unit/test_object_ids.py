"""Generated ``_id`` values have the format of the ObjectId specification, like ``bson.ObjectId()``."""

from __future__ import annotations

import os

import pytest
from bson import ObjectId

from gmongo import _clock, _object_ids
from gmongo._object_ids import new_object_id


def parts_of(object_id):
    data = object_id.binary
    return data[:4], data[4:9], int.from_bytes(data[9:], "big")


def test_object_ids_of_one_process_share_random_part_and_count_up():
    generated = [parts_of(new_object_id()) for _ in range(1000)]
    assert len({random for _, random, _ in generated}) == 1
    first = generated[0][2]
    assert [number for _, _, number in generated] == [(first + n) % 2**24 for n in range(1000)]


def test_object_id_counter_starts_randomly_and_wraps_to_zero(monkeypatch):
    assert len({parts_of(_object_ids._ObjectIdGenerator().make())[2] for _ in range(10)}) == 10
    monkeypatch.setattr(_object_ids._random, "urandom", lambda size: b"\xff" * size)
    generator = _object_ids._ObjectIdGenerator()
    assert [parts_of(generator.make())[1:] for _ in range(2)] == [(b"\xff" * 5, 0xFFFFFF), (b"\xff" * 5, 0)]


@pytest.mark.parametrize(
    ("seconds", "stored_seconds"),
    [(0x7FFFFFFF, b"\x7f\xff\xff\xff"), (0x80000000, b"\x80\0\0\0"), (0xFFFFFFFF, b"\xff" * 4), (2**32, bytes(4))],
)
def test_time_of_object_id_is_unsigned(monkeypatch, seconds, stored_seconds):
    monkeypatch.setattr(_clock, "time", lambda: seconds + 0.9)
    assert parts_of(new_object_id())[0] == stored_seconds


def test_forked_child_has_own_random_part():
    own_id = new_object_id()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, new_object_id().binary)
        os._exit(0)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        os.close(writer)
        child_id = ObjectId(pipe.read(12))
    assert parts_of(child_id)[1] != parts_of(own_id)[1]
    assert parts_of(new_object_id())[1] == parts_of(own_id)[1]

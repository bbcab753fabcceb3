"""Random reads of GridFS and Python files have equal results. Random writes fill the chunks."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.database import Database
from gmongo.gridfs import GridFSBucket
from gmongo.testing import Deployment

DATA = bytes(random.Random(5).choice(b"abc\n") for _ in range(100))


@pytest.fixture(scope="module")
def database() -> Iterator[Database[Any]]:
    with Deployment.standalone() as deployment, MongoClient[Any](deployment.uri) as client:
        yield client.db


def random_calls(rng: random.Random) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the method names and arguments of 60 random calls."""
    for _ in range(60):
        name = rng.choice(["read", "read", "readline", "readlines", "seek", "seek", "tell", "next"])
        if name == "seek":
            whence = rng.choice([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END])
            yield name, (rng.randrange(-20, 120), whence)
        elif name in ("read", "readline", "readlines"):
            yield name, rng.choice([(), (rng.choice([-1, 0, 1, 2, 7, 8, 9, 30, 1000]),)])
        else:
            yield name, ()


def result_and_position(file: Any, name: str, arguments: tuple[int, ...]) -> object:
    try:
        result = next(file, b"") if name == "next" else getattr(file, name)(*arguments)
    except (OSError, ValueError):
        return "error", file.tell()
    return result, file.tell()


@pytest.mark.parametrize("chunk_size", [1, 7, 8, 99, 100, 101])
def test_random_reads_of_gridfs_file_equal_reads_of_python_file(database: Database[Any], chunk_size: int) -> None:
    bucket = GridFSBucket(database, f"read{chunk_size}", chunk_size_bytes=chunk_size)
    file_id = bucket.upload_from_stream("f", DATA)
    rng = random.Random(chunk_size)
    for _ in range(3 if chunk_size == 1 else 6):
        grid_file, python_file = bucket.open_download_stream(file_id), io.BytesIO(DATA)
        for name, arguments in random_calls(rng):
            if name == "seek" and python_file.tell() + arguments[0] < 0:
                continue  # a Python file may replace a position below 0 by 0
            if name == "seek" and arguments[1] == os.SEEK_END and arguments[0] < -100:
                continue
            assert result_and_position(grid_file, name, arguments) == result_and_position(
                python_file, name, arguments
            ), (name, arguments)


@pytest.mark.parametrize("chunk_size", [1, 7, 50, 100, 1000])
def test_random_writes_to_gridfs_file_are_stored_in_chunks(
    database: Database[Any], chunk_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gmongo.gridfs.grid_in._BUFFER_SIZE", 20)
    bucket = GridFSBucket(database, f"write{chunk_size}", chunk_size_bytes=chunk_size)
    rng = random.Random(chunk_size)
    parts = [
        bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 3, chunk_size, 2 * chunk_size]))) for _ in range(20)
    ]
    with bucket.open_upload_stream("f") as file:
        for part in parts:
            kind: Callable[[bytes], Any] = rng.choice([bytes, bytearray, memoryview, io.BytesIO])
            file.write(kind(part))
    whole = b"".join(parts)
    assert bucket.open_download_stream(file._id).read() == whole
    assert (file.length, file.chunk_size) == (len(whole), chunk_size)
    chunks = list(database[f"write{chunk_size}.chunks"].find({"files_id": file._id}).sort("n"))
    assert [(each["n"], each["data"]) for each in chunks] == [
        (number, whole[start : start + chunk_size]) for number, start in enumerate(range(0, len(whole), chunk_size))
    ]

"""Random calls on a GridFS file have the results of equal calls on a Python file."""

from __future__ import annotations

import datetime
import io
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.database import Database
from gmongo.gridfs import GridFS, GridFSBucket, GridIn, NoFile
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
                continue  # only a GridFS file raises an error for a position below 0
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


def raise_in_with_block(file: GridIn) -> None:
    with pytest.raises(ZeroDivisionError), file:
        raise ZeroDivisionError


ENDS: dict[str, Callable[[GridIn], None]] = {
    "close": GridIn.close,
    "abort": GridIn.abort,
    "failed block": raise_in_with_block,
}


@pytest.mark.parametrize("second_end", ENDS)
@pytest.mark.parametrize("first_end", ENDS)
def test_second_end_of_upload_has_no_effect(database: Database[Any], first_end: str, second_end: str) -> None:
    bucket = GridFSBucket(database, "ends", chunk_size_bytes=4)
    file = bucket.open_upload_stream("f")
    file.write(b"x" * 10)
    file._flush()
    file.write(b"y")
    assert not file.closed
    ENDS[first_end](file)
    assert file.closed
    counts = {"close": (3, 1)}.get(first_end, (0, 0))
    count = {"files_id": file._id}
    assert (
        database.ends.chunks.count_documents(count),
        database.ends.files.count_documents({"_id": file._id}),
    ) == counts
    with pytest.raises(ValueError, match="cannot write to a closed file"):
        file.write(b"z")
    ENDS[second_end](file)
    assert (
        database.ends.chunks.count_documents(count),
        database.ends.files.count_documents({"_id": file._id}),
    ) == counts


def test_error_of_source_fails_the_upload_and_removes_chunks(database: Database[Any]) -> None:
    def read(size: int) -> bytes:
        raise ZeroDivisionError

    source = io.BytesIO()
    source.read = read  # type: ignore[method-assign, assignment]
    file = GridFSBucket(database, "sources", chunk_size_bytes=4).open_upload_stream("f")
    file.write(b"x" * 10)
    file._flush()
    for attempt in (lambda: file.write(source), lambda: file.write(b"z"), file.close):
        with pytest.raises(ZeroDivisionError):
            attempt()
        assert database.sources.chunks.count_documents({}) == 0


DESCRIPTION = {
    "filename": "f",
    "contentType": "text/plain",
    "length": 3,
    "chunkSize": 4,
    "uploadDate": datetime.datetime(2020, 1, 2),
    "aliases": ["g"],
    "metadata": {"a": 1},
    "md5": "900150983cd24fb0d6963f7d28e17f72",
}
ATTRIBUTES = {
    "name": "filename",
    "content_type": "contentType",
    "chunk_size": "chunkSize",
    "upload_date": "uploadDate",
    **{name: name for name in ("filename", "length", "aliases", "metadata", "md5")},
}


def test_file_attributes_equal_fields_of_file_document(database: Database[Any]) -> None:
    database.attributes.files.insert_many([{"_id": 1, **DESCRIPTION, "own": 5}, {"_id": 2, "chunkSize": 4}])
    bucket = GridFSBucket(database, "attributes")
    file, bare = bucket.open_download_stream(1), bucket.open_download_stream(2)
    assert file._id == 1 and file.own == 5
    for attribute, field in ATTRIBUTES.items():
        assert getattr(file, attribute) == DESCRIPTION[field], attribute
        if field not in ("length", "chunkSize"):
            assert getattr(bare, attribute) is None, attribute
    assert (bare.length, bare.chunk_size) == (0, 4)
    with pytest.raises(AttributeError, match=r"^GridOut object has no attribute 'own'$"):
        _ = bare.own


def test_get_version_counts_from_oldest_or_newest_version(database: Database[Any]) -> None:
    files = GridFS(database, "versions")
    for day, text in ((3, b"newest"), (1, b"oldest"), (2, b"middle")):
        files.put(text, filename="f", _id=day)
        database.versions.files.update_one({"_id": day}, {"$set": {"uploadDate": datetime.datetime(2020, 1, day)}})
    contents = {version: files.get_version("f", version).read() for version in (None, -1, -2, -3, 0, 1, 2)}
    assert contents == {
        **{None: b"newest", -1: b"newest", -2: b"middle", -3: b"oldest"},
        **{0: b"oldest", 1: b"middle", 2: b"newest"},
    }
    assert files.get_version("f").read() == files.get_last_version("f").read() == b"newest"
    for version in (3, -4):
        with pytest.raises(NoFile):
            files.get_version("f", version)

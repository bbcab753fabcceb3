"""Files of GridFS beside those of Python: the same calls give the same bytes, whatever the size of chunks."""

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


def steps(dice: random.Random) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Calls that both kinds of files know."""
    for _ in range(60):
        name = dice.choice(["read", "read", "readline", "readlines", "seek", "seek", "tell", "next"])
        if name == "seek":
            whence = dice.choice([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END])
            yield name, (dice.randrange(-20, 120), whence)
        elif name in ("read", "readline", "readlines"):
            yield name, dice.choice([(), (dice.choice([-1, 0, 1, 2, 7, 8, 9, 30, 1000]),)])
        else:
            yield name, ()


def outcome(file: Any, name: str, arguments: tuple[int, ...]) -> object:
    try:
        result = next(file, b"") if name == "next" else getattr(file, name)(*arguments)
    except (OSError, ValueError):
        return "refused", file.tell()
    return result, file.tell()


@pytest.mark.parametrize("size", [1, 7, 8, 99, 100, 101])
def test_reading(database: Database[Any], size: int) -> None:
    bucket = GridFSBucket(database, f"read{size}", chunk_size_bytes=size)
    file_id = bucket.upload_from_stream("f", DATA)
    dice = random.Random(size)
    for _ in range(3 if size == 1 else 6):
        ours, theirs = bucket.open_download_stream(file_id), io.BytesIO(DATA)
        for name, arguments in steps(dice):
            if name == "seek" and theirs.tell() + arguments[0] < 0:
                continue  # a file of Python goes to its beginning
            if name == "seek" and arguments[1] == os.SEEK_END and arguments[0] < -100:
                continue
            assert outcome(ours, name, arguments) == outcome(theirs, name, arguments), (name, arguments)


@pytest.mark.parametrize("size", [1, 7, 50, 100, 1000])
def test_writing(database: Database[Any], size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmongo.gridfs.grid_in._BUFFER_SIZE", 20)
    bucket = GridFSBucket(database, f"write{size}", chunk_size_bytes=size)
    dice = random.Random(size)
    pieces = [bytes(dice.randrange(256) for _ in range(dice.choice([0, 1, 3, size, 2 * size]))) for _ in range(20)]
    with bucket.open_upload_stream("f") as file:
        for piece in pieces:
            kind: Callable[[bytes], Any] = dice.choice([bytes, bytearray, memoryview, io.BytesIO])
            file.write(kind(piece))
    whole = b"".join(pieces)
    assert bucket.open_download_stream(file._id).read() == whole
    assert (file.length, file.chunk_size) == (len(whole), size)
    chunks = list(database[f"write{size}.chunks"].find({"files_id": file._id}).sort("n"))
    assert [(each["n"], each["data"]) for each in chunks] == [
        (number, whole[start : start + size]) for number, start in enumerate(range(0, len(whole), size))
    ]


# However an upload ends


def in_a_block(file: GridIn) -> None:
    with pytest.raises(ZeroDivisionError), file:
        raise ZeroDivisionError


ENDS: dict[str, Callable[[GridIn], None]] = {
    "close": GridIn.close,
    "abort": GridIn.abort,
    "a block that fails": in_a_block,
}


@pytest.mark.parametrize("again", ENDS)
@pytest.mark.parametrize("end", ENDS)
def test_an_upload_ends_once(database: Database[Any], end: str, again: str) -> None:
    bucket = GridFSBucket(database, "ends", chunk_size_bytes=4)
    file = bucket.open_upload_stream("f")
    file.write(b"x" * 10)
    file._flush()
    file.write(b"y")
    assert not file.closed
    ENDS[end](file)
    assert file.closed
    found = {"close": (3, 1)}.get(end, (0, 0))
    count = {"files_id": file._id}
    assert (
        database.ends.chunks.count_documents(count),
        database.ends.files.count_documents({"_id": file._id}),
    ) == found
    with pytest.raises(ValueError, match="cannot write to a closed file"):
        file.write(b"z")
    ENDS[again](file)
    assert (
        database.ends.chunks.count_documents(count),
        database.ends.files.count_documents({"_id": file._id}),
    ) == found


def test_source_that_fails_removes_the_chunks_and_fails_the_upload(database: Database[Any]) -> None:
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


def test_what_a_file_says_of_itself(database: Database[Any]) -> None:
    """Older programs have written fields that newer ones do not."""
    database.said.files.insert_many([{"_id": 1, **DESCRIPTION, "own": 5}, {"_id": 2, "chunkSize": 4}])
    bucket = GridFSBucket(database, "said")
    file, bare = bucket.open_download_stream(1), bucket.open_download_stream(2)
    assert file._id == 1 and file.own == 5
    for attribute, field in ATTRIBUTES.items():
        assert getattr(file, attribute) == DESCRIPTION[field], attribute
        if field not in ("length", "chunkSize"):
            assert getattr(bare, attribute) is None, attribute
    assert (bare.length, bare.chunk_size) == (0, 4)
    with pytest.raises(AttributeError, match=r"^GridOut object has no attribute 'own'$"):
        _ = bare.own


def test_versions_are_counted_from_either_end(database: Database[Any]) -> None:
    files = GridFS(database, "versions")
    for day, text in ((3, b"newest"), (1, b"oldest"), (2, b"between")):
        files.put(text, filename="f", _id=day)
        database.versions.files.update_one({"_id": day}, {"$set": {"uploadDate": datetime.datetime(2020, 1, day)}})
    found = {version: files.get_version("f", version).read() for version in (None, -1, -2, -3, 0, 1, 2)}
    assert found == {
        **{None: b"newest", -1: b"newest", -2: b"between", -3: b"oldest"},
        **{0: b"oldest", 1: b"between", 2: b"newest"},
    }
    assert files.get_version("f").read() == files.get_last_version("f").read() == b"newest"
    for version in (3, -4):
        with pytest.raises(NoFile):
            files.get_version("f", version)

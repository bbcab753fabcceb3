"""Writing a file."""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import NoReturn

from bson.binary import Binary
from bson.int64 import Int64
from gevent import spawn

from gmongo._documents import DocumentDict, Value
from gmongo._object_ids import new_object_id
from gmongo._server_facts import codes
from gmongo._short_text import short
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.errors import BulkWriteError, DuplicateKeyError, PyMongoError
from gmongo.execution.classify import raise_write_concern_error
from gmongo.execution.deadline import until
from gmongo.gridfs.errors import FileExists
from gmongo.gridfs.storage import DEFAULT_CHUNK_SIZE, Storage, by_id, check_acknowledged, check_session
from gmongo.wire.message import Buffer

# Chunks are sent together when so many bytes have come.
_BUFFER_SIZE = 4 * 1024 * 1024
# Names that keywords and attributes may have instead.
_KEYWORDS = {"content_type": "contentType", "chunk_size": "chunkSize"}
_ALIASES = {"name": "filename", **_KEYWORDS}
_READ_ONLY = frozenset({"_id", "chunk_size", "closed", "length", "md5", "upload_date"})


class GridIn:
    """A file to be written, which readers see when it is closed; made by :meth:`GridFSBucket.open_upload_stream` and
    :meth:`GridFS.new_file`.

    In a ``with``, it is closed at the end; if an exception leaves the block, the upload is aborted instead, and what
    was stored of it is removed (after a kill or a time-out, in the background).

    Attributes set on it become fields of the file's description.

    Specification: GridFS, "File Upload".

    :param root_collection: the root collection of the bucket.
    :param session: the session of all its writes; None (the default) is one that the driver takes for each.
    :param kwargs: fields of the description, such as ``_id``, ``filename``, ``contentType``, ``metadata``; and
        ``chunkSize`` (in bytes, 255 KiB by default) and ``encoding`` (of the text given to :meth:`write`).
    :raises ConfigurationError: the collection's writes are not acknowledged.
    :raises InvalidOperation: the session is in a transaction.
    :raises TypeError: ``chunkSize`` is no integer.
    :raises ValueError: ``chunkSize`` is less than 1.
    """

    def __init__(
        self, root_collection: Collection[Value], session: ClientSession | None = None, **kwargs: Value
    ) -> None:
        self._storage = Storage(root_collection)
        check_acknowledged(root_collection, "root_collection")
        check_session(session)
        fields = {name: value for name, value in kwargs.items() if name not in _KEYWORDS}
        fields.update((_KEYWORDS[name], value) for name, value in kwargs.items() if name in _KEYWORDS)
        self._encoding: str | None = fields.get("encoding")
        self._session = session
        self._deadline = self._storage.deadline()
        self._file: DocumentDict = {"_id": kwargs["_id"] if "_id" in kwargs else new_object_id(), **fields}
        size = fields.get("chunkSize")
        self._file["chunkSize"] = DEFAULT_CHUNK_SIZE if size is None else checked_size("chunk_size", size)
        self._buffer = bytearray()  # of the chunk that is not full yet
        self._chunks: list[DocumentDict] = []  # full, but not sent yet
        self._n = 0  # of the next chunk
        self._length = 0
        self._is_sole = "_id" not in kwargs  # no other file has its _id
        self._owns_chunks = False  # there may be chunks with its _id, and they are its own
        self._closed = False

    # Writing

    def write(self, data: object) -> None:
        """Write bytes, text, or all that a file has.

        :param data: bytes; text, if `encoding` was given; or an object with a ``read`` method.
        :raises ValueError: the file is closed.
        :raises TypeError: `data` is something else, or text without an encoding.
        :raises FileExists: there is another file with this ``_id``.
        """
        if self._closed:
            raise ValueError("cannot write to a closed file")
        with until(self._deadline):
            read = getattr(data, "read", None)
            if read is not None:
                self._write_file(read)
            else:
                self._write_bytes(self._bytes_of(data))

    def _bytes_of(self, data: object) -> Buffer:
        if isinstance(data, (bytes, bytearray, memoryview)):
            return data
        if not isinstance(data, str):
            raise TypeError(f"can only write strings or file-like objects, not {type(data).__name__}")
        if self._encoding is None:
            raise TypeError("must specify an encoding for file in order to write str")
        return data.encode(self._encoding)

    def _write_file(self, read: Callable[[int], object]) -> None:
        """Copy a file to its end. If it fails, the upload is aborted."""
        try:
            while data := read(self.chunk_size):
                self._write_bytes(self._bytes_of(data))
        except BaseException as error:
            self._give_up(error)
            raise

    def _write_bytes(self, data: Buffer) -> None:
        view = memoryview(data).cast("B")
        self._length += len(view)
        size = self.chunk_size
        while len(view):
            room = size - len(self._buffer)
            self._buffer += view[:room]
            view = view[room:]
            if len(self._buffer) == size:
                self._cut()
                if len(self._chunks) * size >= _BUFFER_SIZE:
                    self._flush()

    def writelines(self, sequence: Iterable[object]) -> None:
        """Write each element. No line ends are added.

        :param sequence: of elements that :meth:`write` takes.
        :raises ValueError: the file is closed.
        :raises TypeError: an element is something else.
        """
        for data in sequence:
            self.write(data)

    def _cut(self) -> None:
        """Make a chunk of the buffer."""
        chunk = {
            "_id": new_object_id(),
            "files_id": self._file["_id"],
            "n": self._n,
            "data": Binary(bytes(self._buffer)),
        }
        self._chunks.append(chunk)
        self._buffer.clear()
        self._n += 1

    def _flush(self) -> None:
        """Send the chunks. If that fails, nothing more can be written, since the file would have a gap."""
        try:
            self._storage.prepare(self._session)
            if self._chunks:
                self._owns_chunks |= self._is_sole  # also of what is interrupted, and done all the same
                self._storage.chunks.insert_many(self._chunks, session=self._session)
                self._owns_chunks = True
        except Exception as error:
            self._end()  # what has failed to store chunks would fail to remove them, too
            if _is_duplicate(error):
                raise self._exists() from error
            if isinstance(error, BulkWriteError) and not error.details["writeErrors"]:
                raise_write_concern_error({"writeConcernError": error.details["writeConcernErrors"][-1]})
            raise
        except BaseException as error:
            self._give_up(error)
            raise
        self._chunks = []

    def _exists(self) -> FileExists:
        return FileExists(f"file with _id {self._file['_id']!r} already exists")

    # Ending

    def close(self) -> None:
        """Write what is left, and make the file visible. It may be called again.

        :raises FileExists: there is another file with this ``_id``.
        """
        if self._closed:
            return
        with until(self._deadline):
            if self._buffer:
                self._cut()
            self._flush()
            description = {**self._file, "length": Int64(self._length), "uploadDate": _now()}
            try:
                self._storage.files.insert_one(description, session=self._session)
            except DuplicateKeyError as error:
                raise self._exists() from error
        self._file = description
        self._closed = True

    def abort(self) -> None:
        """Remove what was stored, and close the file.

        :raises PyMongoError: it could not be removed.
        """
        if self._closed:
            return
        self._end()
        if self._owns_chunks or self._is_sole:
            self._storage.remove_chunks(self._file["_id"], self._session)

    def _give_up(self, error: BaseException) -> None:
        """Abort the upload because of `error`, which the caller raises."""
        if self._closed:
            return
        self._end()
        if not self._owns_chunks:
            return
        if isinstance(error, Exception):
            self._clean_up(self._session)
        else:
            spawn(self._clean_up, None)  # after a kill or a time-out, without waiting

    def _clean_up(self, session: ClientSession | None) -> None:
        with suppress(PyMongoError):
            self._storage.remove_chunks(self._file["_id"], session)

    def _end(self) -> None:
        self._closed = True
        self._buffer.clear()
        self._chunks.clear()

    def __enter__(self) -> GridIn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._give_up(error)

    # The description

    def set(self, name: str, value: object) -> None:
        """Set a field of the description; of a closed file too.

        :param name: of the field.
        :param value: of the field.
        """
        field = _ALIASES.get(name, name)
        self._file[field] = value
        if self._closed:
            self._storage.files.update_one(by_id(self._file["_id"]), {"$set": {field: value}}, session=self._session)

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") and name != "_id":
            object.__setattr__(self, name, value)
        elif name in _READ_ONLY:
            raise AttributeError(f"{name!r} of a GridIn cannot be set")
        else:
            self.set(name, value)

    def __getattr__(self, name: str) -> Value:
        fields = self.__dict__.get("_file", {})
        if name in fields:
            return fields[name]
        if name in _READ_ONLY:  # the property has failed
            raise AttributeError(f"can only get {name!r} on a closed file")
        raise AttributeError(f"GridIn object has no attribute {name!r}")

    @property
    def filename(self) -> str | None:
        """The name of the file."""
        return self._file.get("filename")

    name = filename

    @property
    def content_type(self) -> str | None:
        """The MIME type of the contents."""
        return self._file.get("contentType")

    @property
    def chunk_size(self) -> int:
        """The size of its chunks, in bytes."""
        return int(self._file["chunkSize"])

    @property
    def length(self) -> int:
        """The size of the file in bytes, when it is closed."""
        length: int = self._when_closed("length")
        return length

    @property
    def upload_date(self) -> datetime.datetime:
        """When it was closed, in UTC."""
        found: datetime.datetime = self._when_closed("uploadDate")
        return found

    @property
    def md5(self) -> str | None:
        """None, when it is closed: new files have no MD5 digest."""
        self._when_closed("length")
        return self._file.get("md5")

    def _when_closed(self, field: str) -> Value:
        if field not in self._file:
            raise AttributeError  # __getattr__ says more
        return self._file[field]

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._closed

    # What files can do

    def read(self, size: int = -1) -> NoReturn:
        """Not possible.

        :param size: of no effect.
        :raises io.UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("read")

    def readable(self) -> bool:
        """False."""
        return False

    def seekable(self) -> bool:
        """False."""
        return False

    def writeable(self) -> bool:
        """True."""
        return True


def checked_size(option: str, size: object) -> int:
    """The size of chunks in bytes.

    :param option: the name to call it by in an error message.
    :raises TypeError: it is no integer.
    :raises ValueError: it is less than 1.
    """
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{option} must be an integer, not {short(size)}")
    if size < 1:
        raise ValueError(f"{option} must be at least 1 byte, not {size}")
    return size


def _is_duplicate(error: Exception) -> bool:
    """Whether there were chunks of that file already."""
    errors = error.details["writeErrors"] if isinstance(error, BulkWriteError) else ()
    return any(each.get("code") == codes.DUPLICATE_KEY for each in errors)


def _now() -> datetime.datetime:
    return datetime.datetime.now(tz=datetime.timezone.utc)

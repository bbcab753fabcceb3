"""Writing a file."""

from __future__ import annotations

import datetime
import io
import logging
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import NoReturn

from bson.binary import Binary
from bson.int64 import Int64

from gmongo._background import RestartingGreenlet, Wakeup
from gmongo._documents import Document, DocumentDict, Value
from gmongo._object_ids import new_object_id
from gmongo._safe_log import safely
from gmongo._server_facts import codes
from gmongo._short_text import short
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.errors import (
    BulkWriteError,
    ConnectionFailure,
    DuplicateKeyError,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
)
from gmongo.execution.classify import raise_write_concern_error
from gmongo.execution.deadline import until
from gmongo.gridfs.errors import FileExists
from gmongo.gridfs.exclusive_use import ExclusiveUse
from gmongo.gridfs.storage import DEFAULT_CHUNK_SIZE, Storage, by_id, check_acknowledged, check_session
from gmongo.wire.message import Buffer
from gmongo.wire.transport import without_frames

_log = logging.getLogger("gmongo.background")

# Chunks are sent together when so many bytes, or so many chunks, have come.
_BUFFER_SIZE = 4 * 1024 * 1024
_MOST_CHUNKS = 1000  # so that one command can name them all
# When to remove the chunks of an interrupted insert, which the server may still perform: seconds between the attempts.
_PAUSES = (0.0, 0.1, 0.5, 2.0)
# Names that keywords and attributes may have instead.
_KEYWORDS = {"content_type": "contentType", "chunk_size": "chunkSize"}
_ALIASES = {"name": "filename", **_KEYWORDS}
_READ_ONLY = frozenset({"_id", "chunk_size", "closed", "length", "md5", "upload_date"})


class GridIn:
    """A file to be written, which readers see when it is closed; made by :meth:`GridFSBucket.open_upload_stream` and
    :meth:`GridFS.new_file`.

    In a ``with``, it is closed at the end; if an exception leaves the block, the upload is aborted instead, and the
    driver removes the stored chunks: in the background after a kill, a timeout, or a lost connection.

    An upload that has failed stays failed: :meth:`write` and :meth:`close` raise the first error again, and
    :meth:`abort` removes the stored chunks. One greenlet at a time may write: a second one gets InvalidOperation.

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
        self._owns_chunks = False  # its first chunk is stored, so all chunks of files with its _id are its own
        self._doubtful: list[Value] = []  # the _ids of further chunks that may be stored
        self._sent: Document | None = None  # the description, when that may be stored
        self._unanswered = False  # the server may still store what was sent last
        self._failure: BaseException | None = None  # the first one
        self._removes = False  # in the background
        self._closed = False
        self._use = ExclusiveUse("GridIn")

    # Writing

    def write(self, data: object) -> None:
        """Write bytes, text, or all that a file has. If that file fails, the driver removes the stored chunks.

        :param data: bytes; text, if `encoding` was given; or an object with a ``read`` method.
        :raises ValueError: the file is closed.
        :raises TypeError: `data` is something else, or text without an encoding.
        :raises FileExists: there is another file with this ``_id``.
        :raises InvalidOperation: another greenlet uses the file, or an earlier call was interrupted.
        :raises PyMongoError: this call has failed to store chunks, or an earlier one has.
        """
        with self._use:
            if self._closed:
                raise ValueError("cannot write to a closed file")
            self._raise_failure()
            read = getattr(data, "read", None)
            content = b"" if read is not None else self._bytes_of(data)
            try:
                with until(self._deadline):
                    if read is not None:
                        self._write_file(read)
                    else:
                        self._write_bytes(content)
            except BaseException as error:
                self._fail(error)
                if read is not None:
                    self._clean_up_after(error)
                raise

    def _bytes_of(self, data: object) -> Buffer:
        if isinstance(data, (bytes, bytearray, memoryview)):
            return data
        if not isinstance(data, str):
            raise TypeError(f"can only write strings or file-like objects, not {type(data).__name__}")
        if self._encoding is None:
            raise TypeError("must specify an encoding for file in order to write str")
        return data.encode(self._encoding)

    def _write_file(self, read: Callable[[int], object]) -> None:
        while data := read(self.chunk_size):
            self._write_bytes(self._bytes_of(data))

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
                if len(self._chunks) * size >= _BUFFER_SIZE or len(self._chunks) >= _MOST_CHUNKS:
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
        """Send the chunks."""
        self._storage.prepare(self._session)
        if not self._chunks:
            return
        self._doubtful = [chunk["_id"] for chunk in self._chunks]
        self._unanswered = True
        try:
            self._storage.chunks.insert_many(self._chunks, session=self._session)
        except OperationFailure as error:
            self._unanswered = False
            if isinstance(error, BulkWriteError):
                if _is_duplicate(error):
                    raise self._exists() from error
                if not error.details["writeErrors"]:
                    raise_write_concern_error({"writeConcernError": error.details["writeConcernErrors"][-1]})
            raise
        self._owns_chunks = True
        self._unanswered = False
        self._doubtful = []
        self._chunks = []

    def _exists(self) -> FileExists:
        return FileExists(f"file with _id {self._file['_id']!r} already exists")

    # Ending

    def close(self) -> None:
        """Write what is left, and make the file visible. It may be called again.

        :raises FileExists: there is another file with this ``_id``.
        :raises InvalidOperation: another greenlet uses the file, or an earlier call was interrupted.
        :raises PyMongoError: this call has failed to store the file, or an earlier one has.
        """
        with self._use:
            if self._closed:
                return
            self._raise_failure()
            try:
                with until(self._deadline):
                    self._finish()
            except BaseException as error:
                self._fail(error)
                raise

    def _finish(self) -> None:
        if self._buffer:
            self._cut()
        self._flush()
        description = {**self._file, "length": Int64(self._length), "uploadDate": _now()}
        self._sent = description
        self._unanswered = True
        try:
            self._storage.files.insert_one(description, session=self._session)
        except DuplicateKeyError as error:
            self._sent = None
            self._unanswered = False
            raise self._exists() from error
        self._file = description
        self._closed = True

    def abort(self) -> None:
        """Remove what was stored, and close the file. It may be called again, also after it has failed.

        :raises InvalidOperation: another greenlet uses the file.
        :raises PyMongoError: it could not be removed.
        """
        with self._use:
            if self._closed:
                return
            self._fail(InvalidOperation("the upload was aborted"))
            self._remove_now()
            self._closed = True
            if self._unanswered:
                self._remove_soon()

    def _fail(self, error: BaseException) -> None:
        """Note the first failure. Nothing can be written after it, since the file would have a gap."""
        interrupted = not isinstance(error, Exception)
        if self._failure is None:
            text = f"the upload was interrupted by {type(error).__name__}: abort it, and upload the file again"
            self._failure = InvalidOperation(text) if interrupted else without_frames(error)
        self._buffer.clear()
        self._chunks = []
        if interrupted:
            self._remove_soon()  # this greenlet is to end, and may never abort the upload

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise without_frames(self._failure)

    def _give_up(self, error: BaseException) -> None:
        """Abort the upload because of `error`, which the caller raises."""
        if not self._closed:
            self._fail(error)
            self._closed = True
            self._clean_up_after(error)

    def _clean_up_after(self, error: BaseException) -> None:
        if isinstance(error, ConnectionFailure):
            self._remove_soon()  # to reach the server may take as long again
        elif isinstance(error, Exception):
            try:
                self._remove_now()
            except PyMongoError as failure:
                self._log_leftover(failure)

    def _remove_now(self) -> None:
        try:
            self._remove(self._session)
        except PyMongoError:
            raise
        except BaseException:
            self._remove_soon()  # the caller may never call again
            raise

    def _remove_soon(self) -> None:
        if not self._removes:
            self._removes = True
            RestartingGreenlet(self._remove_in_background).start()

    def _remove_in_background(self) -> None:
        """Remove what was stored. What the server may still store is looked for again after a while."""
        failure = None
        for pause in _PAUSES if self._unanswered else (0.0,):
            Wakeup().sleep(pause)
            try:
                self._remove(None)  # the session may be in use
                failure = None
            except PyMongoError as error:
                failure = without_frames(error)
        if failure is not None:
            self._log_leftover(failure)

    def _log_leftover(self, error: BaseException) -> None:
        text = "GridFS: the chunks of the failed upload with _id %s could not be removed from %s: %s"
        safely(_log.warning, text, short(self._file["_id"]), self._storage.chunks.full_name, error)

    def _remove(self, session: ClientSession | None) -> None:
        """Remove what may be stored of the file: first what readers see, then its own chunks."""
        file_id = self._file["_id"]
        if self._sent is not None:
            this_one = {**by_id(file_id), "uploadDate": self._sent["uploadDate"]}
            self._storage.files.delete_one(this_one, session=session)
        if self._owns_chunks:
            self._storage.remove_chunks(file_id, session)
            self._owns_chunks = False  # from now on, another file with the same _id may have chunks
        if self._doubtful:
            self._storage.remove_chunks(file_id, session, self._doubtful)

    def __enter__(self) -> GridIn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._give_up(error)
            return
        try:
            self.close()
        except BaseException as failure:
            self._give_up(failure)
            raise

    # The description

    def set(self, name: str, value: object) -> None:
        """Set a field of the description; of a closed file too.

        :param name: of the field.
        :param value: of the field.
        :raises InvalidOperation: another greenlet uses the file.
        """
        field = _ALIASES.get(name, name)
        with self._use:
            if self._closed:
                change = {"$set": {field: value}}
                self._storage.files.update_one(by_id(self._file["_id"]), change, session=self._session)
            self._file[field] = value

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

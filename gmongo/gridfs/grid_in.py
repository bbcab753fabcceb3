"""The class GridIn: a file that the application writes."""

from __future__ import annotations

import datetime
import io
import logging
from collections.abc import Iterable
from typing import NoReturn, cast

from bson.binary import Binary
from bson.int64 import Int64

from gmongo import errors
from gmongo._background import RestartingGreenlet, Wakeup
from gmongo._documents import Document, DocumentDict, Value
from gmongo._object_ids import new_object_id
from gmongo._safe_log import printable, safely
from gmongo._server_facts import codes
from gmongo._truncated_repr import short
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.execution.deadline import until
from gmongo.execution.reply_errors import raise_write_concern_error
from gmongo.gridfs import storage
from gmongo.gridfs.errors import FileExists
from gmongo.wire.message import Buffer
from gmongo.wire.transport import without_frames

_log = logging.getLogger("gmongo.background")

_BUFFER_SIZE = 4 * 1024 * 1024  # size in bytes at which the driver sends the buffered chunks
_MAX_CHUNKS = 1000  # number of chunks at which the driver sends the buffered chunks
_PAUSES = (0.0, 0.1, 0.5, 2.0)  # seconds before each attempt to remove the stored chunks
# Alternative names of keyword arguments and of attributes -> names of fields of the description.
_KEYWORD_ALIASES = {"content_type": "contentType", "chunk_size": "chunkSize"}
_ATTRIBUTE_ALIASES = {"name": "filename", **_KEYWORD_ALIASES}
_READ_ONLY_ATTRIBUTES = frozenset({"_id", "chunk_size", "closed", "length", "md5", "upload_date"})


class GridIn(storage.FileProperties):
    """File for writing, opened by :meth:`GridFSBucket.open_upload_stream` or :meth:`GridFS.new_file`.

    Readers see the file after the file is closed. The end of a ``with`` block closes the file. If an
    exception leaves the block, the driver removes the stored chunks. After a kill, a timeout, or a
    lost connection, the driver removes the chunks in the background.

    After a failure, :meth:`write` and :meth:`close` raise the first error again, and :meth:`abort`
    removes the stored chunks. Only one greenlet may use the file at a time.

    An assignment to an attribute sets a field of the file's description.

    Specification: GridFS, "File Upload".

    :param root_collection: the root collection of the bucket, such as ``database.fs``.
    :param session: the session of all writes; None (the default) uses an implicit session per write.
    :param kwargs: fields of the description, such as ``_id``, ``filename``, ``contentType`` and ``metadata``.
        ``chunkSize`` is the chunk size in bytes, 255 KiB by default. ``encoding`` is the encoding of text that
        :meth:`write` receives.
    :raises ConfigurationError: the write concern of `root_collection` is unacknowledged.
    :raises InvalidOperation: the session is in a transaction.
    :raises TypeError: `root_collection` is not a collection, or ``chunkSize`` is not an integer.
    :raises ValueError: ``chunkSize`` is less than 1.
    """

    def __init__(
        self, root_collection: Collection[Value], session: ClientSession | None = None, **kwargs: Value
    ) -> None:
        self._storage = storage.Storage(root_collection)
        storage.check_acknowledged(root_collection, "root_collection")
        storage.check_session(session)
        fields = {name: value for name, value in kwargs.items() if name not in _KEYWORD_ALIASES}
        fields.update((_KEYWORD_ALIASES[name], value) for name, value in kwargs.items() if name in _KEYWORD_ALIASES)
        self._encoding: str | None = fields.get("encoding")
        self._session = session
        self._deadline = self._storage.executor.deadline()
        self._file: DocumentDict = {"_id": kwargs["_id"] if "_id" in kwargs else new_object_id(), **fields}
        size = fields.get("chunkSize")
        default = storage.DEFAULT_CHUNK_SIZE
        self._file["chunkSize"] = default if size is None else checked_size("chunk_size", size)
        self._buffer = bytearray()  # the contents of the last chunk, which is not yet full
        self._chunks: list[DocumentDict] = []  # complete chunks that the driver has not yet stored
        self._next_number = 0  # the number of the next chunk
        self._length = 0
        self._owns_chunks = False  # True if all stored chunks with this files_id belong to the file
        self._unconfirmed_ids: list[Value] = []  # the _id of each possibly stored chunk
        self._sent_description: Document | None = None  # the possibly stored description
        self._insert_is_unanswered = False  # True if the server may still perform the last insert
        self._failure: BaseException | None = None  # the first failure of the upload
        self._removal_started = False  # True if a background greenlet removes, or removed, the chunks
        self._closed = False
        self._use = storage.ExclusiveUse("GridIn")

    def write(self, data: object) -> None:
        """Write bytes, text, or the rest of a readable file.

        If `data` is a readable file, and the call fails, the driver removes the stored chunks.

        :param data: bytes, text (if `encoding` is set), or an object with a ``read`` method.
        :raises ValueError: the file is closed.
        :raises TypeError: `data` has the wrong type, or `data` is text without an encoding.
        :raises FileExists: another file has this ``_id``.
        :raises InvalidOperation: another greenlet uses the file, or an exception interrupted an earlier call.
        :raises PyMongoError: this call or an earlier call could not store chunks.
        """
        with self._use:
            if self._closed:
                raise ValueError("cannot write to a closed file")
            self._raise_failure()
            read = getattr(data, "read", None)
            content = b"" if read is not None else self._convert_to_bytes(data)
            try:
                with until(self._deadline):
                    self._write_bytes(content)
                    while read is not None and (part := read(self.chunk_size)):
                        self._write_bytes(self._convert_to_bytes(part))
            except BaseException as error:
                self._record_failure(error)
                if read is not None:
                    self._remove_after_failure(error)
                raise

    def _convert_to_bytes(self, data: object) -> Buffer:
        if isinstance(data, (bytes, bytearray, memoryview)):
            return data
        if not isinstance(data, str):
            raise TypeError(f"can only write strings or file-like objects, not {type(data).__name__}")
        if self._encoding is None:
            raise TypeError("must specify an encoding for file in order to write str")
        return data.encode(self._encoding)

    def _write_bytes(self, data: Buffer) -> None:
        view = memoryview(data).cast("B")
        self._length += len(view)
        size = self.chunk_size
        while len(view):
            room = size - len(self._buffer)
            self._buffer += view[:room]
            view = view[room:]
            if len(self._buffer) == size:
                self._complete_chunk()
                if len(self._chunks) * size >= _BUFFER_SIZE or len(self._chunks) >= _MAX_CHUNKS:
                    self._flush()

    def writelines(self, sequence: Iterable[object]) -> None:
        """Write each element of `sequence`, without additional line endings.

        :param sequence: an iterable of elements that :meth:`write` accepts.
        :raises ValueError: the file is closed.
        :raises TypeError: an element has the wrong type.
        """
        for data in sequence:
            self.write(data)

    def _complete_chunk(self) -> None:
        chunk = {
            "_id": new_object_id(),
            "files_id": self._file["_id"],
            "n": self._next_number,
            "data": Binary(bytes(self._buffer)),
        }
        self._chunks.append(chunk)
        self._buffer.clear()
        self._next_number += 1

    def _flush(self) -> None:
        self._storage.ensure_indexes(self._session)
        if not self._chunks:
            return
        self._unconfirmed_ids = [chunk["_id"] for chunk in self._chunks]
        self._insert_is_unanswered = True
        try:
            self._storage.chunks.insert_many(self._chunks, session=self._session)
        except errors.OperationFailure as error:
            self._insert_is_unanswered = False
            if isinstance(error, errors.BulkWriteError):
                if any(each.get("code") == codes.DUPLICATE_KEY for each in error.details["writeErrors"]):
                    raise self._file_exists_error() from error
                if not error.details["writeErrors"]:
                    raise_write_concern_error({"writeConcernError": error.details["writeConcernErrors"][-1]})
            raise
        self._owns_chunks = True
        self._insert_is_unanswered = False
        self._unconfirmed_ids = []
        self._chunks = []

    def _file_exists_error(self) -> FileExists:
        return FileExists(f"file with _id {self._file['_id']!r} already exists")

    def close(self) -> None:
        """Store the remaining data and the description, so that readers see the file. Further calls do nothing.

        :raises FileExists: another file has this ``_id``.
        :raises InvalidOperation: another greenlet uses the file, or an exception interrupted an earlier call.
        :raises PyMongoError: this call or an earlier call could not store the file.
        """
        with self._use:
            if self._closed:
                return
            self._raise_failure()
            try:
                with until(self._deadline):
                    self._finish()
            except BaseException as error:
                self._record_failure(error)
                raise

    def _finish(self) -> None:
        if self._buffer:
            self._complete_chunk()
        self._flush()
        upload_date = datetime.datetime.now(tz=datetime.timezone.utc)
        description = {**self._file, "length": Int64(self._length), "uploadDate": upload_date}
        self._sent_description = description
        self._insert_is_unanswered = True
        try:
            self._storage.files.insert_one(description, session=self._session)
        except errors.DuplicateKeyError as error:
            self._sent_description = None
            self._insert_is_unanswered = False
            raise self._file_exists_error() from error
        self._file = description
        self._closed = True

    def abort(self) -> None:
        """Remove the stored data, and close the file. If the method fails, the application may repeat the call.

        :raises InvalidOperation: another greenlet uses the file.
        :raises PyMongoError: the driver could not remove the stored data.
        """
        with self._use:
            if self._closed:
                return
            self._record_failure(errors.InvalidOperation("the upload was aborted"))
            self._remove_now()
            self._closed = True
            if self._insert_is_unanswered:
                self._start_removal()

    def _record_failure(self, error: BaseException) -> None:
        """Record the first failure for later calls of `write` and `close`. Discard unsent data."""
        interrupted = not isinstance(error, Exception)
        if self._failure is None:
            text = f"the upload was interrupted by {type(error).__name__}: abort it, and upload the file again"
            self._failure = errors.InvalidOperation(text) if interrupted else without_frames(error)
        self._buffer.clear()
        self._chunks = []
        if interrupted:
            self._start_removal()  # perhaps the application does not call abort()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise without_frames(self._failure)

    def _abort_upload(self, error: BaseException) -> None:
        """Abort the upload because of `error`, which the caller raises."""
        if not self._closed:
            self._record_failure(error)
            self._closed = True
            self._remove_after_failure(error)

    def _remove_after_failure(self, error: BaseException) -> None:
        if isinstance(error, errors.ConnectionFailure):
            self._start_removal()  # a removal here may take as long as the failed operation
        elif isinstance(error, Exception):
            try:
                self._remove_now()
            except errors.PyMongoError as failure:
                self._log_leftover(failure)

    def _remove_now(self) -> None:
        try:
            self._remove(self._session)
        except errors.PyMongoError:
            raise
        except BaseException:
            self._start_removal()  # perhaps the application does not repeat an interrupted call
            raise

    def _start_removal(self) -> None:
        if not self._removal_started:
            self._removal_started = True
            RestartingGreenlet(self._remove_in_background).start()

    def _remove_in_background(self) -> None:
        """Remove the stored data, repeatedly if the server may still perform an insert."""
        failure = None
        for pause in _PAUSES if self._insert_is_unanswered else (0.0,):
            Wakeup().sleep(pause)
            try:
                self._remove(None)  # pass no session, because another greenlet may use the session
                failure = None
            except errors.PyMongoError as error:
                failure = without_frames(error)
        if failure is not None:
            self._log_leftover(failure)

    def _log_leftover(self, error: BaseException) -> None:
        text = "GridFS: the chunks of the failed upload with _id %s could not be removed from %s: %s"
        safely(_log.warning, text, short(self._file["_id"]), self._storage.chunks.full_name, printable(str(error)))

    def _remove(self, session: ClientSession | None) -> None:
        """Remove the stored data: first the description, and then the chunks."""
        file_id = self._file["_id"]
        if self._sent_description is not None:
            own_file_query = {**storage.id_query(file_id), "uploadDate": self._sent_description["uploadDate"]}
            self._storage.files.delete_one(own_file_query, session=session)
        if self._owns_chunks:
            self._storage.remove_chunks(file_id, session)
            self._owns_chunks = False  # another file may then have chunks with this files_id
        if self._unconfirmed_ids:
            self._storage.remove_chunks(file_id, session, self._unconfirmed_ids)

    def __enter__(self) -> GridIn:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            self._abort_upload(error)
            return
        try:
            self.close()
        except BaseException as failure:
            self._abort_upload(failure)
            raise

    def set(self, name: str, value: object) -> None:
        """Set a field of the file's description. The file may be open or closed.

        :param name: the name of the field.
        :param value: the value of the field.
        :raises InvalidOperation: another greenlet uses the file.
        """
        field = _ATTRIBUTE_ALIASES.get(name, name)
        with self._use:
            if self._closed:
                change = {"$set": {field: value}}
                self._storage.files.update_one(storage.id_query(self._file["_id"]), change, session=self._session)
            self._file[field] = value

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") and name != "_id":
            object.__setattr__(self, name, value)
        elif name in _READ_ONLY_ATTRIBUTES:
            raise AttributeError(f"{name!r} of a GridIn cannot be set")
        else:
            self.set(name, value)

    def __getattr__(self, name: str) -> Value:
        fields = self.__dict__.get("_file", {})
        if name in fields:
            return fields[name]
        if name in _READ_ONLY_ATTRIBUTES:  # Python calls __getattr__ after the property has raised AttributeError
            raise AttributeError(f"can only get {name!r} on a closed file")
        raise AttributeError(f"GridIn object has no attribute {name!r}")

    def _description(self) -> Document:
        return self._file

    @property
    def chunk_size(self) -> int:
        """The size of each chunk except the last chunk, in bytes."""
        return int(self._file["chunkSize"])

    @property
    def length(self) -> int:
        """The size of the file in bytes. Before the close, the property raises AttributeError."""
        return cast("int", self._field_when_closed("length"))

    @property
    def upload_date(self) -> datetime.datetime:
        """The UTC time of the end of the upload. Before the file is closed, the property raises AttributeError."""
        return cast("datetime.datetime", self._field_when_closed("uploadDate"))

    @property
    def md5(self) -> str | None:
        """The stored MD5 digest, or None. Before the file is closed, the property raises AttributeError."""
        self._field_when_closed("length")
        return self._file.get("md5")

    def _field_when_closed(self, field: str) -> Value:
        if field not in self._file:
            raise AttributeError  # Python then calls __getattr__, which raises an AttributeError with a message
        return self._file[field]

    @property
    def closed(self) -> bool:
        """True if the file is closed."""
        return self._closed

    def read(self, size: int = -1) -> NoReturn:
        """Raise UnsupportedOperation, because the file does not support this method.

        :param size: a parameter that the method ignores.
        """
        raise io.UnsupportedOperation("read")

    def readable(self) -> bool:
        """Return False."""
        return False

    def seekable(self) -> bool:
        """Return False."""
        return False

    def writeable(self) -> bool:
        """Return True."""
        return True


def checked_size(option: str, size: object) -> int:
    """Return the chunk size if valid, or raise an error that names the parameter `option`."""
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{option} must be an integer, not {short(size)}")
    if size < 1:
        raise ValueError(f"{option} must be at least 1 byte, not {size}")
    return size

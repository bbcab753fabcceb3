"""The class GridOut: a file that the application reads."""

from __future__ import annotations

import datetime
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn, cast

from gmongo._documents import Document, DocumentDict, Value
from gmongo._server_facts import codes
from gmongo._truncated_repr import short
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.cursor import Cursor
from gmongo.engines.read_ahead import DEFAULT_MAX_BYTES, check_not_explicit, checked_read_ahead_limits
from gmongo.errors import OperationFailure, PyMongoError
from gmongo.execution.deadline import until
from gmongo.execution.retry import may_retry_read
from gmongo.gridfs import storage
from gmongo.gridfs.errors import CorruptGridFile, NoFile


class GridOut(storage.FileProperties, io.IOBase):
    """File that the application reads. :meth:`GridFSBucket.open_download_stream` and :meth:`GridFS.get` open a file.

    Each field of the file's description is an attribute. An iteration over the file yields its lines. After an error or
    an interruption, the position is unchanged. Only one greenlet may use the file at a time.

    If the server has lost the cursor (after a restart, or because the session expired), the driver
    opens a new cursor at the next chunk.

    Specification: GridFS, "File Download".

    :param root_collection: the root collection of the bucket, such as ``database.fs``.
    :param file_id: the ``_id`` of the file.
    :param file_document: the description of the file; None (the default) fetches the description of `file_id`.
    :param session: the session of all reads; None (the default) uses an implicit session per read.
    :raises TypeError: `root_collection` is not a :class:`~gmongo.collection.Collection`.
    :raises InvalidOperation: the session is in a transaction.
    """

    def __init__(
        self,
        root_collection: Collection[Value],
        file_id: Value = None,
        file_document: Document | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__()
        storage.check_session(session)
        self._storage = storage.Storage(root_collection)
        self._file_id = file_id
        self._file: Document | None = file_document or None
        self._session = session
        self._deadline = self._storage.executor.deadline()
        self._use = storage.ExclusiveUse("GridOut")
        self._position = 0
        self._chunk = b""  # received bytes that the application has not read yet
        self._cursor: Cursor[Value] | None = None  # the cursor over the following chunks
        self._next_number: int  # the number of the chunk that the cursor returns next
        self._read_ahead_limits: tuple[int, int] | None = None

    def open(self) -> None:
        """Fetch the description of the file.

        :raises NoFile: the file does not exist.
        """
        self._description()

    def _description(self) -> Document:
        if not self._file:
            with until(self._deadline):
                self._file = self._storage.files.find_one(storage.id_query(self._file_id), session=self._session)
        if not self._file:
            raise NoFile(f"no file in gridfs collection {self._storage.files.full_name!r} with _id {self._file_id!r}")
        return self._file

    @property
    def _id(self) -> Value:
        """The ``_id`` of the file."""
        return storage.id_field(self._description())

    @property
    def length(self) -> int:
        """The size of the file in bytes."""
        return storage.integer_field(self._description(), "length", 0, 0)

    @property
    def chunk_size(self) -> int:
        """The size of each chunk except the last chunk, in bytes."""
        return storage.integer_field(self._description(), "chunkSize", 1)

    @property
    def upload_date(self) -> datetime.datetime:
        """The UTC time of the upload, or None if the description contains no time."""
        return cast("datetime.datetime", self._description().get("uploadDate"))

    aliases: list[str] | None = storage.description_field("aliases", "The other names of the file, or None.")
    metadata: Document | None = storage.description_field("metadata", "The metadata of the file, or None.")
    md5: str | None = storage.description_field("md5", "The MD5 digest of the file, or None.")

    def __getattr__(self, name: str) -> Value:
        if not name.startswith("__") and "_file" in self.__dict__:
            description = self._description()
            if name in description:
                return description[name]
        raise AttributeError(f"GridOut object has no attribute {name!r}")

    def read_ahead(self, batches: int = 1, max_bytes: int = DEFAULT_MAX_BYTES) -> GridOut:
        """Fetch the next chunks in the background while the application uses the current batch.

        The driver applies the setting when it opens a cursor, such as at the first read. See also
        :meth:`Cursor.read_ahead <gmongo.cursor.Cursor.read_ahead>`.

        :param batches: the maximum number of batches in advance; 1 by default. A batch has up to 16 MB.
        :param max_bytes: the maximum number of bytes in advance; 32 MiB by default.
        :returns: this file.
        :raises TypeError: `batches` or `max_bytes` is not an integer.
        :raises ValueError: `batches` or `max_bytes` is less than 1.
        :raises InvalidOperation: the file uses an explicit session. An explicit session runs one command at a time.
        """
        check_not_explicit(self._session)
        self._read_ahead_limits = checked_read_ahead_limits(batches, max_bytes)
        return self

    def read(self, size: int = -1) -> bytes:
        """Read bytes from the current position.

        :param size: the maximum number of bytes; a negative number (the default) reads the rest of the file.
        :returns: the bytes. At the end of the file, the result is empty.
        :raises NoFile: the file does not exist.
        :raises CorruptGridFile: a chunk is missing or has the wrong size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        parts = []
        with self._exclusive_read():
            available = self.length - self._position
            remaining = available if size < 0 else min(size, available)
            while remaining > 0:
                part = self._read_part(remaining)
                parts.append(part)
                remaining -= len(part)
        return b"".join(parts)

    @contextmanager
    def _exclusive_read(self) -> Iterator[None]:
        """Reject other greenlets during the block. After an exception, restore the position."""
        with self._use:
            start = self._position
            try:
                yield
            except BaseException:
                self._set_position(start)
                raise

    def readchunk(self) -> bytes:
        """Return the rest of the chunk at the current position. The result is empty at the end of the file.

        :raises CorruptGridFile: the chunk is missing or has the wrong size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        with self._use:
            return self._read_part(self.chunk_size) if self._position < self.length else b""

    def readline(self, size: int | None = -1) -> bytes:
        """Return the next line, including its line end.

        :param size: the limit in bytes; None or a negative number (-1 by default) means no limit.
        :returns: the bytes. At the end of the file, the result is empty.
        :raises CorruptGridFile: a chunk is missing or has the wrong size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        line = bytearray()
        with self._exclusive_read():
            limit = self.length if size is None or size < 0 else size
            while len(line) < limit and self._position < self.length and not line.endswith(b"\n"):
                if not self._chunk:
                    self._load_chunk()
                end = self._chunk.find(b"\n") + 1
                line += self._read_part(min(end or len(self._chunk), limit - len(line)))
        return bytes(line)

    def readlines(self, hint: int | None = -1) -> list[bytes]:
        """Return the remaining lines.

        :param hint: the total size of the lines, in bytes, above which the method ends. None, zero,
            or a negative number (-1 by default) reads all lines.
        :raises CorruptGridFile: a chunk is missing or has the wrong size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        lines = []
        size = 0
        with self._exclusive_read():
            while line := self.readline():
                lines.append(line)
                size += len(line)
                if hint is not None and 0 < hint < size:
                    break
        return lines

    def __iter__(self) -> GridOut:
        return self

    def _read_part(self, size: int) -> bytes:
        """Return at least one byte and at most `size` bytes of one chunk."""
        if not self._chunk:
            self._load_chunk()
        part = self._chunk[:size]
        if self._position + len(part) == self.length:
            self._check_end()
        self._chunk = self._chunk[size:]
        self._position += len(part)
        return part

    def _load_chunk(self) -> None:
        number, offset = divmod(self._position, self.chunk_size)
        with until(self._deadline):
            chunk = self._fetch_chunk(number)
        if chunk is None:
            raise CorruptGridFile(f"no chunk #{number}")
        if chunk.get("n") != number:
            raise CorruptGridFile(f"missing chunk: expected chunk #{number} but found chunk with n={chunk.get('n')}")
        size, data = min(self.chunk_size, self.length - number * self.chunk_size), storage.chunk_data(chunk)
        if len(data) != size:
            raise CorruptGridFile(f"chunk #{number} has the wrong size: expected {size} bytes but found {len(data)}")
        self._chunk = bytes(data[offset:] if offset else data)

    def _fetch_chunk(self, number: int) -> Value:
        """Return the first chunk whose number is `number` or higher, or None."""
        if self._cursor is not None and self._next_number == number:
            try:
                return self._read_chunk(self._cursor, number)
            except PyMongoError as error:
                is_cursor_lost = isinstance(error, OperationFailure) and error.code in codes.CURSOR_GONE
                if error.timeout or not (is_cursor_lost or may_retry_read(error)):
                    raise
        else:
            self._close_cursor()
        query: DocumentDict = {"files_id": storage.id_condition(self._id)}
        if number:
            query["n"] = {"$gte": number}
        cursor = self._cursor = self._storage.chunks.find(query, sort=[("n", 1)], session=self._session)
        if self._read_ahead_limits is not None:
            cursor.read_ahead(*self._read_ahead_limits)
        return self._read_chunk(cursor, number)

    def _read_chunk(self, cursor: Cursor[Value], number: int) -> Value:
        try:
            chunk = next(cursor, None)
        except BaseException:
            self._drop_cursor()  # the next call opens a new cursor at the same chunk
            raise
        self._next_number = number + 1
        return chunk

    def _check_end(self) -> None:
        """Raise CorruptGridFile if a chunk after the last byte of the file contains data."""
        count = -(-self.length // self.chunk_size)
        with until(self._deadline):
            extra = self._fetch_chunk(count)
        self._close_cursor()
        if extra is not None and storage.chunk_data(extra):
            raise CorruptGridFile(f"extra chunk found: expected {count} chunks but found chunk with n={extra.get('n')}")

    def _close_cursor(self) -> None:
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()

    def _drop_cursor(self) -> None:
        """Let a background greenlet close the cursor. The method does no I/O, and does not switch greenlets."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None and cursor._cursor is not None:
            cursor._cursor.drop()

    def seek(self, pos: int, whence: int = os.SEEK_SET) -> int:
        """Change the current position, and return the new position.

        :param pos: the offset in bytes.
        :param whence: the origin: ``os.SEEK_SET`` (the default), ``os.SEEK_CUR`` or ``os.SEEK_END``.
        :raises OSError: `whence` is not one of these constants, or the new position is negative.
        :raises InvalidOperation: another greenlet uses the file.
        """
        with self._use:
            bases = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.length}
            if whence not in bases:
                raise OSError(22, f"whence must be 0, 1 or 2, not {short(whence)}")
            position = bases[whence] + pos
            if position < 0:
                raise OSError(22, f"the position must not be negative, was {position}")
            self._set_position(position)
        return position

    def _set_position(self, position: int) -> None:
        distance = position - self._position
        self._chunk = self._chunk[distance:] if 0 <= distance < len(self._chunk) else b""
        self._position = position

    def tell(self) -> int:
        """Return the current position, in bytes from the beginning."""
        return self._position

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file. Further calls do nothing.

        :raises InvalidOperation: another greenlet uses the file.
        """
        with self._use:
            self._close_cursor()
            super().close()

    def __enter__(self) -> GridOut:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.close()
        else:
            self._drop_cursor()  # do not wait for the server while an exception leaves the block
            super().close()

    def __del__(self) -> None:
        """Do nothing. The method of the base class would call :meth:`close`, which does I/O."""

    def write(self, value: object) -> NoReturn:
        """Raise UnsupportedOperation, because the file does not support this method.

        :param value: a parameter that the method ignores.
        """
        raise io.UnsupportedOperation("write")

    def writelines(self, lines: Iterable[object]) -> NoReturn:
        """Raise UnsupportedOperation, because the file does not support this method.

        :param lines: a parameter that the method ignores.
        """
        raise io.UnsupportedOperation("writelines")

    def writable(self) -> bool:
        """Return False."""
        return False

    def truncate(self, size: int | None = None) -> NoReturn:
        """Raise UnsupportedOperation, because the file does not support this method.

        :param size: a parameter that the method ignores.
        """
        raise io.UnsupportedOperation("truncate")

    def fileno(self) -> NoReturn:
        """Raise UnsupportedOperation, because the file does not support this method."""
        raise io.UnsupportedOperation("fileno")

    def flush(self) -> None:
        """Do nothing, because the file has no data to write."""

    def isatty(self) -> bool:
        """Return False."""
        return False

"""GridOut: a file to read."""

from __future__ import annotations

import datetime
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NoReturn, cast

from gmongo._documents import Document, DocumentDict, Value
from gmongo._server_facts import codes
from gmongo._truncated_repr import short
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.cursor import Cursor
from gmongo.engines.read_ahead import MAX_BYTES, checked_allowance
from gmongo.engines.read_ahead import check_session as check_read_ahead
from gmongo.errors import OperationFailure, PyMongoError
from gmongo.execution.deadline import until
from gmongo.execution.retry import may_retry_read
from gmongo.gridfs.errors import CorruptGridFile, NoFile
from gmongo.gridfs.exclusive_use import ExclusiveUse
from gmongo.gridfs.storage import Storage, by_id, check_session, data_of, exactly, id_of, number_of


class GridOut(io.IOBase):
    """File to read. :meth:`GridFSBucket.open_download_stream` and :meth:`GridFS.get` open one.

    Each field of the description is an attribute. Without `file_document`, the driver fetches the description when it
    is first needed. Iterating yields the lines.

    If the server has lost the cursor (an expired session, a restart), reading continues with the next chunk. An error
    or an interrupt does not change the position, and the next call reads the same bytes. Only one greenlet may use the
    file at a time: a second greenlet gets InvalidOperation.

    Specification: GridFS, "File Download".

    :param root_collection: the root collection of the bucket.
    :param file_id: the ``_id`` of the file.
    :param file_document: the description of the file; it replaces `file_id`.
    :param session: the session of all reads; None (the default) uses an implicit session for each read.
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
        check_session(session)
        self._storage = Storage(root_collection)
        self._file_id = file_id
        self._file: Document | None = file_document or None
        self._session = session
        self._deadline = self._storage.deadline()
        self._use = ExclusiveUse("GridOut")
        self._position = 0
        self._chunk = b""  # received bytes that the application has not read
        self._cursor: Cursor[Value] | None = None  # cursor of the following chunks
        self._next = 0  # number of the chunk after the last received chunk
        self._ahead: tuple[int, int] | None = None

    def open(self) -> None:
        """Fetch the description now.

        :raises NoFile: the file does not exist.
        """
        self._description()

    def _description(self) -> Document:
        if not self._file:
            with until(self._deadline):
                self._file = self._storage.files.find_one(by_id(self._file_id), session=self._session)
        if not self._file:
            raise NoFile(f"no file in gridfs collection {self._storage.files.full_name!r} with _id {self._file_id!r}")
        return self._file

    # The description

    @property
    def _id(self) -> Value:
        """The ``_id`` of the file."""
        return id_of(self._description())

    @property
    def filename(self) -> str | None:
        """The name of the file."""
        return self._description().get("filename")

    name = filename

    @property
    def content_type(self) -> str | None:
        """The MIME type of the contents."""
        return self._description().get("contentType")

    @property
    def length(self) -> int:
        """The size of the file in bytes."""
        return number_of(self._description(), "length", 0, 0)

    @property
    def chunk_size(self) -> int:
        """The chunk size in bytes."""
        return number_of(self._description(), "chunkSize", 1)

    @property
    def upload_date(self) -> datetime.datetime:
        """The time of the upload, in UTC, or None if another program stored no time."""
        return cast("datetime.datetime", self._description().get("uploadDate"))

    @property
    def aliases(self) -> list[str] | None:
        """Other names that the writer gave the file, or None."""
        return self._description().get("aliases")

    @property
    def metadata(self) -> Document | None:
        """Metadata that the writer stored, or None."""
        return self._description().get("metadata")

    @property
    def md5(self) -> str | None:
        """The MD5 digest that the writer stored, or None."""
        return self._description().get("md5")

    def __getattr__(self, name: str) -> Value:
        if not name.startswith("__") and "_file" in self.__dict__:
            description = self._description()
            if name in description:
                return description[name]
        raise AttributeError(f"GridOut object has no attribute {name!r}")

    # Reading

    def read_ahead(self, batches: int = 1, max_bytes: int = MAX_BYTES) -> GridOut:
        """Fetch the next batches of chunks while the application uses the present batch.

        The setting applies to the next query: after opening the file, or after a :meth:`seek`. See
        :meth:`Cursor.read_ahead <gmongo.cursor.Cursor.read_ahead>`.

        :param batches: the maximum number of batches fetched in advance; 1 by default. A batch has up to 16 MB.
        :param max_bytes: the maximum number of bytes fetched in advance; 32 MiB by default.
        :returns: this file.
        :raises TypeError: a number is not an integer.
        :raises ValueError: a number is less than 1.
        :raises InvalidOperation: the file uses an explicit session, which runs one command at a time.
        """
        allowance = checked_allowance(batches, max_bytes)
        check_read_ahead(self._session)
        self._ahead = allowance
        return self

    def read(self, size: int = -1) -> bytes:
        """Read bytes from the present position.

        :param size: the maximum number of bytes; a negative number (the default) reads the rest of the file.
        :returns: the bytes; empty at the end of the file.
        :raises NoFile: the file does not exist.
        :raises CorruptGridFile: a chunk is missing or has the wrong size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        parts = []
        with self._exclusive_read():
            available = self.length - self._position
            remaining = available if size < 0 else min(size, available)
            while remaining > 0:
                part = self._take(remaining)
                parts.append(part)
                remaining -= len(part)
        return b"".join(parts)

    @contextmanager
    def _exclusive_read(self) -> Iterator[None]:
        """Refuse a second greenlet. If reading fails, restore the position."""
        with self._use:
            start = self._position
            try:
                yield
            except BaseException:
                self._go_to(start)
                raise

    def readchunk(self) -> bytes:
        """Return the rest of the chunk at the present position, empty at the end of the file.

        :raises CorruptGridFile: the chunk is missing or has the wrong size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        with self._use:
            return self._take(self.chunk_size) if self._position < self.length else b""

    def readline(self, size: int | None = -1) -> bytes:
        """Return the next line, including its line end.

        :param size: the maximum number of bytes; None or a negative number (the default) means no limit.
        :returns: the bytes; empty at the end of the file.
        :raises CorruptGridFile: a chunk is missing or has the wrong size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        line = bytearray()
        with self._exclusive_read():
            limit = self.length if size is None or size < 0 else size
            while len(line) < limit and self._position < self.length and not line.endswith(b"\n"):
                if not self._chunk:
                    self._fetch()
                end = self._chunk.find(b"\n") + 1
                line += self._take(min(end or len(self._chunk), limit - len(line)))
        return bytes(line)

    def readlines(self, hint: int | None = -1) -> list[bytes]:
        """Return the remaining lines.

        :param hint: reading stops after the line that exceeds this number of bytes; None, zero, or a negative number
            (the default) reads all lines.
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

    def __next__(self) -> bytes:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def _take(self, size: int) -> bytes:
        """Return between one and `size` bytes of one chunk."""
        if not self._chunk:
            self._fetch()
        part = self._chunk[:size]
        if self._position + len(part) == self.length:
            self._check_end()
        self._chunk = self._chunk[size:]
        self._position += len(part)
        return part

    def _fetch(self) -> None:
        """Fetch the chunk at the present position, and discard the bytes before the position."""
        number, offset = divmod(self._position, self.chunk_size)
        with until(self._deadline):
            chunk = self._next_chunk(number)
        if chunk is None:
            raise CorruptGridFile(f"no chunk #{number}")
        if chunk.get("n") != number:
            raise CorruptGridFile(f"missing chunk: expected chunk #{number} but found chunk with n={chunk.get('n')}")
        expected, data = min(self.chunk_size, self.length - number * self.chunk_size), data_of(chunk)
        if len(data) != expected:
            raise CorruptGridFile(
                f"chunk #{number} has the wrong size: expected {expected} bytes but found {len(data)}"
            )
        self._chunk = bytes(data[offset:] if offset else data)

    def _next_chunk(self, number: int) -> Value:
        """Return the chunk with this number or a higher number, or None."""
        if self._cursor is not None and self._next == number:
            try:
                return self._advance(self._cursor, number)
            except PyMongoError as error:
                if error.timeout or not (may_retry_read(error) or _has_lost_cursor(error)):
                    raise
        else:
            self._close_cursor()
        query: DocumentDict = {"files_id": exactly(self._id)}
        if number:
            query["n"] = {"$gte": number}
        cursor = self._cursor = self._storage.chunks.find(query, sort=[("n", 1)], session=self._session)
        if self._ahead is not None:
            cursor.read_ahead(*self._ahead)
        return self._advance(cursor, number)

    def _advance(self, cursor: Cursor[Value], number: int) -> Value:
        try:
            chunk = next(cursor, None)
        except BaseException:
            self._drop_cursor()  # the next call opens a new cursor at the same chunk
            raise
        self._next = number + 1
        return chunk

    def _check_end(self) -> None:
        """Check that no chunk follows the last chunk."""
        count = -(-self.length // self.chunk_size)
        if self._next > count:  # an earlier read has checked this
            return
        with until(self._deadline):
            extra = self._next_chunk(count)
        self._next = count  # the next read repeats this check until it has passed
        self._close_cursor()
        if extra is not None and data_of(extra):
            raise CorruptGridFile(f"extra chunk found: expected {count} chunks but found chunk with n={extra.get('n')}")
        self._next = count + 1

    def _close_cursor(self) -> None:
        """Close the cursor."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()

    def _drop_cursor(self) -> None:
        """Let the cursor killer close the cursor, without I/O and without a greenlet switch."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None and cursor._cursor is not None:
            cursor._cursor.drop()

    def seek(self, pos: int, whence: int = os.SEEK_SET) -> int:
        """Change the position, and return the new position.

        :param pos: the offset in bytes.
        :param whence: the origin of the offset: the beginning (the default), ``os.SEEK_CUR``, or ``os.SEEK_END``.
        :raises OSError: `whence` is another value, or the position is negative.
        :raises InvalidOperation: another greenlet uses the file.
        """
        with self._use:
            bases = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.length}
            if whence not in bases:
                raise OSError(22, f"whence must be 0, 1 or 2, not {short(whence)}")
            position = bases[whence] + pos
            if position < 0:
                raise OSError(22, f"the position must not be negative, was {position}")
            self._go_to(position)
        return position

    def _go_to(self, position: int) -> None:
        ahead = position - self._position
        self._chunk = self._chunk[ahead:] if 0 <= ahead < len(self._chunk) else b""
        self._position = position

    def tell(self) -> int:
        """Return the present position in bytes."""
        return self._position

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file. Further calls have no effect.

        :raises InvalidOperation: another greenlet uses the file.
        """
        with self._use:
            self._close_cursor()
            super().close()

    def __enter__(self) -> GridOut:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._drop_cursor()  # the exception leaves the block without waiting for the server
            super().close()

    def __del__(self) -> None:
        """Do nothing: the cursor cleans up after itself, and no data needs a flush."""

    # Methods of every Python file

    def write(self, value: object) -> NoReturn:
        """Raise UnsupportedOperation.

        :param value: ignored.
        :raises io.UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("write")

    def writelines(self, lines: Iterable[object]) -> NoReturn:
        """Raise UnsupportedOperation.

        :param lines: ignored.
        :raises io.UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("writelines")

    def writable(self) -> bool:
        """Return False."""
        return False

    def truncate(self, size: int | None = None) -> NoReturn:
        """Raise UnsupportedOperation.

        :param size: ignored.
        :raises io.UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("truncate")

    def fileno(self) -> NoReturn:
        """Raise UnsupportedOperation.

        :raises io.UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("fileno")

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Return False."""
        return False


def _has_lost_cursor(error: PyMongoError) -> bool:
    """Return True if the server no longer knows the cursor."""
    return isinstance(error, OperationFailure) and error.code in codes.CURSOR_GONE

"""Reading a file."""

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
from gmongo._short_text import short
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
    """A file to be read, from the beginning or from wherever :meth:`seek` leads; made by
    :meth:`GridFSBucket.open_download_stream` and :meth:`GridFS.get`.

    The driver fetches the description when an attribute needs it, unless `file_document` is given. Other fields of the
    description are attributes, too. Iterating gives the lines.

    Reading continues with the next chunk after the server has lost the cursor (an expired session, a restart). After
    any error or interrupt the position is unchanged, and the next call reads the same bytes. One greenlet at a time may
    read: a second one gets InvalidOperation.

    Specification: GridFS, "File Download".

    :param root_collection: the root collection of the bucket.
    :param file_id: the ``_id`` of the file.
    :param file_document: its description, instead.
    :param session: the session of all its reads; None (the default) is one that the driver takes for each.
    :raises TypeError: `root_collection` is no :class:`~gmongo.collection.Collection`.
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
        self._chunk = b""  # what has arrived, but not been read
        self._cursor: Cursor[Value] | None = None  # of the chunks after that
        self._next = 0  # the number of the chunk after the last one that has arrived
        self._ahead: tuple[int, int] | None = None

    def open(self) -> None:
        """Fetch the description now.

        :raises NoFile: there is no such file.
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
        """Its name."""
        return self._description().get("filename")

    name = filename

    @property
    def content_type(self) -> str | None:
        """The MIME type of the contents."""
        return self._description().get("contentType")

    @property
    def length(self) -> int:
        """Its size in bytes."""
        return number_of(self._description(), "length", 0, 0)

    @property
    def chunk_size(self) -> int:
        """The size of its chunks, in bytes."""
        return number_of(self._description(), "chunkSize", 1)

    @property
    def upload_date(self) -> datetime.datetime:
        """When it was written, in UTC; None if another program did not say."""
        return cast("datetime.datetime", self._description().get("uploadDate"))

    @property
    def aliases(self) -> list[str] | None:
        """Other names, if the writer gave it some."""
        return self._description().get("aliases")

    @property
    def metadata(self) -> Document | None:
        """What the writer wanted to be known of it."""
        return self._description().get("metadata")

    @property
    def md5(self) -> str | None:
        """Its MD5 digest, if the writer made one."""
        return self._description().get("md5")

    def __getattr__(self, name: str) -> Value:
        if not name.startswith("__") and "_file" in self.__dict__:
            description = self._description()
            if name in description:
                return description[name]
        raise AttributeError(f"GridOut object has no attribute {name!r}")

    # Reading

    def read_ahead(self, batches: int = 1, max_bytes: int = MAX_BYTES) -> GridOut:
        """Have the next batches of chunks fetched while the application uses this one; see :meth:`Cursor.read_ahead
        <gmongo.cursor.Cursor.read_ahead>`. It holds for the query that comes next: after opening, or after a
        :meth:`seek`.

        :param batches: how many batches may wait for the application, or be on their way; 1 by default. A batch is of
            up to 16 MB.
        :param max_bytes: how many bytes of them, by default 32 MiB.
        :returns: this file.
        :raises TypeError: a number is no integer.
        :raises ValueError: a number is less than 1.
        :raises InvalidOperation: the file is read in a session of the application's, which runs one command at a time.
        """
        allowance = checked_allowance(batches, max_bytes)
        check_read_ahead(self._session)
        self._ahead = allowance
        return self

    def read(self, size: int = -1) -> bytes:
        """Read on from the present position.

        :param size: how many bytes at most; all that is left if it is negative, as by default.
        :returns: the bytes; none at the end.
        :raises NoFile: there is no such file.
        :raises CorruptGridFile: a chunk is missing, or is not of the right size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        parts = []
        with self._reading():
            left = self.length - self._position
            wanted = left if size < 0 else min(size, left)
            while wanted > 0:
                part = self._take(wanted)
                parts.append(part)
                wanted -= len(part)
        return b"".join(parts)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Refuse a second greenlet. If reading ends early, let the next call read the same again."""
        with self._use:
            start = self._position
            try:
                yield
            except BaseException:
                self._go_to(start)
                raise

    def readchunk(self) -> bytes:
        """What is left of the chunk at the present position. Empty at the end.

        :raises CorruptGridFile: the chunk is missing, or is not of the right size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        with self._use:
            return self._take(self.chunk_size) if self._position < self.length else b""

    def readline(self, size: int | None = -1) -> bytes:
        """The next line, with its end.

        :param size: how many bytes of it at most; all if it is negative, as by default, or None.
        :returns: the bytes; none at the end.
        :raises CorruptGridFile: a chunk is missing, or is not of the right size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        line = bytearray()
        with self._reading():
            limit = self.length if size is None or size < 0 else size
            while len(line) < limit and self._position < self.length and not line.endswith(b"\n"):
                if not self._chunk:
                    self._fetch()
                end = self._chunk.find(b"\n") + 1
                line += self._take(min(end or len(self._chunk), limit - len(line)))
        return bytes(line)

    def readlines(self, hint: int | None = -1) -> list[bytes]:
        """The lines that are left.

        :param hint: no further line is read after more than so many bytes; all are if it is negative, as by default, or
            None.
        :raises CorruptGridFile: a chunk is missing, or is not of the right size.
        :raises InvalidOperation: another greenlet uses the file.
        """
        lines = []
        size = 0
        with self._reading():
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
        """At least one and up to `size` bytes of one chunk."""
        if not self._chunk:
            self._fetch()
        taken = self._chunk[:size]
        if self._position + len(taken) == self.length:
            self._check_end()
        self._chunk = self._chunk[size:]
        self._position += len(taken)
        return taken

    def _fetch(self) -> None:
        """Get the chunk at the present position, from there on."""
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
        """The chunk with this number or a higher one; None if there is none."""
        if self._cursor is not None and self._next == number:
            try:
                return self._advance(self._cursor, number)
            except PyMongoError as error:
                if error.timeout or not (may_retry_read(error) or _has_lost_cursor(error)):
                    raise
        else:
            self._forget()
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
            self._drop()  # the next call opens a new cursor at the same chunk
            raise
        self._next = number + 1
        return chunk

    def _check_end(self) -> None:
        """Behind the last chunk there must be none."""
        count = -(-self.length // self.chunk_size)
        if self._next > count:  # it has been checked
            return
        with until(self._deadline):
            extra = self._next_chunk(count)
        self._next = count  # until the check has passed
        self._forget()
        if extra is not None and data_of(extra):
            raise CorruptGridFile(f"extra chunk found: expected {count} chunks but found chunk with n={extra.get('n')}")
        self._next = count + 1

    def _forget(self) -> None:
        """Close the cursor."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()

    def _drop(self) -> None:
        """Leave the cursor to the reaper. Does no I/O and does not switch."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None and cursor._cursor is not None:
            cursor._cursor.drop()

    def seek(self, pos: int, whence: int = os.SEEK_SET) -> int:
        """Go to another position, and return it.

        :param pos: the position, in bytes.
        :param whence: from where it is counted: the beginning (the default), ``os.SEEK_CUR`` or ``os.SEEK_END``.
        :raises OSError: `whence` is something else, or the position is negative.
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
        """The present position, in bytes."""
        return self._position

    def seekable(self) -> bool:
        """True."""
        return True

    def readable(self) -> bool:
        """True."""
        return True

    def close(self) -> None:
        """End reading. It may be called again.

        :raises InvalidOperation: another greenlet uses the file.
        """
        with self._use:
            self._forget()
            super().close()

    def __enter__(self) -> GridOut:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._drop()  # what leaves the block does not wait for the server
            super().close()

    def __del__(self) -> None:
        """The cursor goes by itself; nothing is to be flushed."""

    # What files can do

    def write(self, value: object) -> NoReturn:
        """Not possible.

        :param value: of no effect.
        :raises io.UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("write")

    def writelines(self, lines: Iterable[object]) -> NoReturn:
        """Not possible.

        :param lines: of no effect.
        :raises io.UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("writelines")

    def writable(self) -> bool:
        """False."""
        return False

    def truncate(self, size: int | None = None) -> NoReturn:
        """Not possible.

        :param size: of no effect.
        :raises io.UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("truncate")

    def fileno(self) -> NoReturn:
        """Not possible.

        :raises io.UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("fileno")

    def flush(self) -> None:
        """Nothing is to be done."""

    def isatty(self) -> bool:
        """False."""
        return False


def _has_lost_cursor(error: PyMongoError) -> bool:
    """Whether the server no longer knows a cursor."""
    return isinstance(error, OperationFailure) and error.code in codes.CURSOR_GONE

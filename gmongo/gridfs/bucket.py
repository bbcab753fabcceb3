"""A bucket of files, with the methods of the GridFS specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmongo._documents import Document, DocumentDict, Value
from gmongo._short_text import short
from gmongo.client_session import ClientSession
from gmongo.database import Database
from gmongo.gridfs.errors import NoFile
from gmongo.gridfs.grid_in import GridIn, checked_size
from gmongo.gridfs.grid_out import GridOut
from gmongo.gridfs.grid_out_cursor import GridOutCursor
from gmongo.gridfs.storage import DEFAULT_CHUNK_SIZE, Storage, by_id, check_acknowledged, check_session, id_of
from gmongo.operations.keys import KeyOrList
from gmongo.read_preferences import _ReadPreference
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class GridFSBucket:
    """A bucket of files.

        >>> bucket = GridFSBucket(database)
        >>> with bucket.open_upload_stream("greeting") as file:
        ...     file.write(b"Hello")
        >>> bucket.open_download_stream_by_name("greeting").read()
        b'Hello'

    A file is known by its ``_id``. Several files may have the same name: they are revisions of it. GridFS takes no part
    in transactions.

    Specification: GridFS.

    :param db: the database that it is in.
    :param bucket_name: its name, which is also the beginning of the names of its two collections; ``"fs"`` by default.
    :param chunk_size_bytes: the size of the chunks of new files, in bytes; 255 KiB by default.
    :param write_concern: which acknowledgement writes wait for; None takes the database's.
    :param read_preference: which servers reads go to; None takes the database's.
    :raises TypeError: `db` is no :class:`~gmongo.database.Database`.
    :raises ConfigurationError: writes are not acknowledged.
    """

    def __init__(
        self,
        db: Database[Value],
        bucket_name: str = "fs",
        chunk_size_bytes: int = DEFAULT_CHUNK_SIZE,
        write_concern: WriteConcern | None = None,
        read_preference: _ReadPreference | None = None,
    ) -> None:
        if not isinstance(db, Database):
            raise TypeError(f"db must be a Database, not of type {type(db).__name__}")
        self._collection = db.get_collection(bucket_name, write_concern=write_concern, read_preference=read_preference)
        check_acknowledged(self._collection, "write concern")
        self._storage = Storage(self._collection)
        self._chunk_size_bytes = checked_size("chunk_size_bytes", chunk_size_bytes)

    # Writing

    def open_upload_stream(
        self,
        filename: str,
        chunk_size_bytes: int | None = None,
        metadata: Document | None = None,
        session: ClientSession | None = None,
    ) -> GridIn:
        """A new file to write to; it is there for others when it is closed.

        Specification: GridFS, "File Upload".

        :param filename: its name.
        :param chunk_size_bytes: the size of its chunks, in bytes; None takes the bucket's.
        :param metadata: a mapping of what else is to be known of it; None is nothing.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :returns: the file; its ``_id`` is an attribute.
        :raises TypeError: `filename` is no string, or the chunk size no integer.
        :raises ValueError: the chunk size is less than 1.
        """
        return self._new_file({}, filename, chunk_size_bytes, metadata, session)

    def open_upload_stream_with_id(
        self,
        file_id: Value,
        filename: str,
        chunk_size_bytes: int | None = None,
        metadata: Document | None = None,
        session: ClientSession | None = None,
    ) -> GridIn:
        """A new file to write to, with an ``_id`` of the application's choice.

        Specification: GridFS, "File Upload".

        :param file_id: its ``_id``.
        :param filename: its name.
        :param chunk_size_bytes: the size of its chunks, in bytes; None takes the bucket's.
        :param metadata: a mapping of what else is to be known of it; None is nothing.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises TypeError: `filename` is no string, or the chunk size no integer.
        :raises ValueError: the chunk size is less than 1.
        """
        return self._new_file({"_id": file_id}, filename, chunk_size_bytes, metadata, session)

    def _new_file(
        self,
        chosen_id: DocumentDict,
        filename: str,
        chunk_size_bytes: int | None,
        metadata: Document | None,
        session: ClientSession | None,
    ) -> GridIn:
        _check_name("filename", filename)
        size = self._chunk_size_bytes
        if chunk_size_bytes is not None:
            size = checked_size("chunk_size_bytes", chunk_size_bytes)
        if metadata is not None:
            chosen_id["metadata"] = metadata
        file = GridIn(self._collection, session, filename=filename, chunk_size=size, **chosen_id)
        file._storage = self._storage  # which remembers that the indexes are there
        return file

    def upload_from_stream(
        self,
        filename: str,
        source: object,
        chunk_size_bytes: int | None = None,
        metadata: Document | None = None,
        session: ClientSession | None = None,
    ) -> Value:
        """Write a file in one go, and return its ``_id``. If that fails, what was stored is removed.

        Specification: GridFS, "File Upload".

        :param filename: its name.
        :param source: bytes, or a file, which is read to its end.
        :param chunk_size_bytes: the size of its chunks, in bytes; None takes the bucket's.
        :param metadata: a mapping of what else is to be known of it; None is nothing.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises TypeError: `filename` is no string, or `source` something else.
        """
        with self.open_upload_stream(filename, chunk_size_bytes, metadata, session) as file:
            file.write(source)
        return file._id

    def upload_from_stream_with_id(
        self,
        file_id: Value,
        filename: str,
        source: object,
        chunk_size_bytes: int | None = None,
        metadata: Document | None = None,
        session: ClientSession | None = None,
    ) -> None:
        """Write a file in one go, with an ``_id`` of the application's choice. If that fails, what was stored is
        removed.

        Specification: GridFS, "File Upload".

        :param file_id: its ``_id``.
        :param filename: its name.
        :param source: bytes, or a file, which is read to its end.
        :param chunk_size_bytes: the size of its chunks, in bytes; None takes the bucket's.
        :param metadata: a mapping of what else is to be known of it; None is nothing.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises TypeError: `filename` is no string, or `source` something else.
        :raises FileExists: there is a file with that ``_id`` already.
        """
        with self.open_upload_stream_with_id(file_id, filename, chunk_size_bytes, metadata, session) as file:
            file.write(source)

    # Reading

    def open_download_stream(self, file_id: Value, session: ClientSession | None = None) -> GridOut:
        """A file to read from.

        Specification: GridFS, "File Download".

        :param file_id: its ``_id``.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises NoFile: there is none with that ``_id``.
        """
        file = GridOut(self._collection, file_id, session=session)
        file.open()
        return file

    def open_download_stream_by_name(
        self, filename: str, revision: int = -1, session: ClientSession | None = None
    ) -> GridOut:
        """A revision of a file to read from.

        Specification: GridFS, "File Download by Filename".

        :param filename: its name.
        :param revision: 0 is the first, 1 the second, …; -1 (the default) is the newest, -2 the one before, …
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises TypeError: `filename` is no string, or `revision` no integer.
        :raises NoFile: there is no such file, or no such revision of it.
        """
        _check_name("filename", filename)
        with self._storage.in_time():
            document = revision_of(self._storage, {"filename": filename}, "revision", revision, session)
            if document is None:
                raise self._no_revision(filename, revision, session)
            return GridOut(self._collection, file_document=document, session=session)

    def _no_revision(self, filename: str, revision: int, session: ClientSession | None) -> NoFile:
        if self._storage.files.find_one({"filename": filename}, {"_id": 1}, session=session) is None:
            return NoFile(f"no file with the name {filename!r}")
        return NoFile(f"no version {revision} for filename {filename!r}")

    def download_to_stream(
        self, file_id: Value, destination: SupportsWrite[bytes], session: ClientSession | None = None
    ) -> None:
        """Write the contents of a file into another, which stays open.

        Specification: GridFS, "File Download".

        :param file_id: its ``_id``.
        :param destination: what they are written to, by its ``write`` method.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises TypeError: `destination` cannot be written to.
        :raises NoFile: there is none with that ``_id``.
        :raises CorruptGridFile: a chunk is missing, or is not of the right size.
        """
        with self._storage.in_time(), self.open_download_stream(file_id, session) as file:
            _copy(file, destination)

    def download_to_stream_by_name(
        self, filename: str, destination: SupportsWrite[bytes], revision: int = -1, session: ClientSession | None = None
    ) -> None:
        """Write the contents of a revision of a file into another file, which stays open.

        Specification: GridFS, "File Download by Filename".

        :param filename: its name.
        :param destination: what they are written to, by its ``write`` method.
        :param revision: 0 is the first, 1 the second, …; -1 (the default) is the newest, -2 the one before, …
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises TypeError: `filename` is no string, `revision` no integer, or `destination` cannot be written to.
        :raises NoFile: there is no such file, or no such revision of it.
        :raises CorruptGridFile: a chunk is missing, or is not of the right size.
        """
        with self._storage.in_time(), self.open_download_stream_by_name(filename, revision, session) as file:
            _copy(file, destination)

    def find(
        self,
        filter: Document | None = None,
        skip: int = 0,
        limit: int = 0,
        no_cursor_timeout: bool = False,
        sort: KeyOrList | None = None,
        batch_size: int = 0,
        session: ClientSession | None = None,
    ) -> GridOutCursor:
        """A cursor over the files whose descriptions match.

        Specification: GridFS, "Generic Find on Files Collection".

        :param filter: a query for descriptions, such as ``{"metadata.owner": "ann"}``; None matches every file.
        :param skip: how many files to leave out at the beginning; 0 by default.
        :param limit: how many files to return at most; 0 (the default) is without limit.
        :param no_cursor_timeout: True keeps the server from closing the cursor when it is unused for ten minutes.
        :param sort: the order: a list of fields of the description and directions, or a mapping. None is the order in
            which the server finds them.
        :param batch_size: how many descriptions a reply brings; 0 (the default) leaves it to the server.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :returns: a cursor of :class:`GridOut`.
        """
        return GridOutCursor(self._collection, filter, skip, limit, no_cursor_timeout, sort, batch_size, session)

    # Changing

    def delete(self, file_id: Value, session: ClientSession | None = None) -> None:
        """Remove a file.

        Specification: GridFS, "File Deletion".

        :param file_id: its ``_id``.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises NoFile: there is none with that ``_id``; chunks that it has left are removed all the same.
        """
        check_session(session)
        with self._storage.in_time():
            result = self._storage.files.delete_one(by_id(file_id), session=session)
            self._storage.remove_chunks(file_id, session)
        if not result.deleted_count:
            raise NoFile(f"no file could be deleted because none matched {file_id!r}")

    def delete_by_name(self, filename: str, session: ClientSession | None = None) -> None:
        """Remove all revisions of a file.

        Specification: GridFS, "File Deletion".

        :param filename: their name.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises TypeError: `filename` is no string.
        :raises NoFile: there is none with that name.
        """
        _check_name("filename", filename)
        check_session(session)
        files, chunks = self._storage.files, self._storage.chunks
        with self._storage.in_time():
            found = [id_of(each) for each in files.find({"filename": filename}, {"_id": 1}, session=session)]
            if not found:
                raise NoFile(f"no file could be deleted because none matched filename {filename!r}")
            files.delete_many({"_id": {"$in": found}}, session=session)
            chunks.delete_many({"files_id": {"$in": found}}, session=session)

    def rename(self, file_id: Value, new_filename: str, session: ClientSession | None = None) -> None:
        """Give a file another name.

        Specification: GridFS, "Renaming Stored Files".

        :param file_id: its ``_id``.
        :param new_filename: its name from now on.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises TypeError: `new_filename` is no string.
        :raises NoFile: there is none with that ``_id``.
        """
        _check_name("new_filename", new_filename)
        check_session(session)
        change = {"$set": {"filename": new_filename}}
        result = self._storage.files.update_one(by_id(file_id), change, session=session)
        if not result.matched_count:
            raise NoFile(f"no files could be renamed to {new_filename!r} because none matched file_id {file_id!r}")

    def rename_by_name(self, filename: str, new_filename: str, session: ClientSession | None = None) -> None:
        """Give all revisions of a file another name.

        Specification: GridFS, "Renaming Stored Files".

        :param filename: their name.
        :param new_filename: their name from now on.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :raises TypeError: a name is no string.
        :raises NoFile: there is none with that name.
        """
        _check_name("filename", filename)
        _check_name("new_filename", new_filename)
        check_session(session)
        change = {"$set": {"filename": new_filename}}
        result = self._storage.files.update_many({"filename": filename}, change, session=session)
        if not result.matched_count:
            raise NoFile(f"no files could be renamed to {new_filename!r} because none matched filename {filename!r}")


def revision_of(
    storage: Storage, query: Document, option: str, revision: int | None, session: ClientSession | None
) -> Value:
    """The description of a revision of a file, or None.

    :param option: the name to call the revision by in an error message.
    :param revision: 0 is the first, 1 the second, …; -1 is the newest, -2 the one before, …
    """
    check_session(session)
    if isinstance(revision, bool) or not isinstance(revision, int):
        raise TypeError(f"{option} must be an integer, not {short(revision)}")
    direction, skip = (-1, -revision - 1) if revision < 0 else (1, revision)
    return storage.files.find_one(query, sort=[("uploadDate", direction)], skip=skip, session=session)


def _copy(file: GridOut, destination: SupportsWrite[bytes]) -> None:
    if not hasattr(destination, "write"):
        raise TypeError(f"destination must be a file that can be written to, not {short(destination)}")
    while chunk := file.readchunk():
        destination.write(chunk)


def _check_name(option: str, name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{option} must be a string, not {short(name)}")

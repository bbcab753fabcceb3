"""The class GridFSBucket, with the methods of the GridFS specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmongo._documents import Document, DocumentDict, Value
from gmongo._parameter_docs import describes_parameters
from gmongo._truncated_repr import short
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.database import Database
from gmongo.gridfs.errors import NoFile
from gmongo.gridfs.grid_in import GridIn, checked_size
from gmongo.gridfs.grid_out import GridOut
from gmongo.gridfs.grid_out_cursor import GridOutCursor
from gmongo.gridfs.storage import DEFAULT_CHUNK_SIZE, Storage, check_acknowledged, check_session, id_field, id_query
from gmongo.operations.keys import KeyOrList
from gmongo.read_preferences import _ReadPreference
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


_PARAMETERS = """
:param file_id: the ``_id`` of the file.
:param filename: the name of the file.
:param chunk_size_bytes: the chunk size in bytes; None (the default) uses the chunk size of the bucket.
:param metadata: a mapping that GridFS stores in the description of the file; None by default.
:param source: the contents: bytes, or a readable file, which the driver reads to its end.
:param destination: an object with a ``write`` method, which receives bytes.
:param revision: 0 is the oldest revision, 1 the next, -1 (the default) the newest, -2 the second newest.
:param new_filename: the new name of the file.
"""


@describes_parameters(GridOutCursor)
class _FileFinder:
    """Base class of :class:`GridFSBucket` and :class:`~gmongo.gridfs.GridFS`, with their common method."""

    _collection: Collection[Value]

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
        """Return a cursor over the files whose descriptions match `filter`.

        :returns: a cursor whose items are :class:`GridOut` objects.
        """
        return GridOutCursor(self._collection, filter, skip, limit, no_cursor_timeout, sort, batch_size, session)


@describes_parameters(GridOutCursor, _PARAMETERS)
class GridFSBucket(_FileFinder):
    """Bucket of files in a database.

        >>> bucket = GridFSBucket(database)
        >>> with bucket.open_upload_stream("greeting") as file:
        ...     file.write(b"Hello")
        >>> bucket.open_download_stream_by_name("greeting").read()
        b'Hello'

    The ``_id`` identifies a file. The description of a file is its document in the files collection.
    Files with equal names are revisions of each other. GridFS does not support transactions.

    Specification: GridFS.

    :param db: the database that contains the bucket.
    :param bucket_name: the bucket's name, and prefix of both collection names; ``"fs"`` by default.
    :param chunk_size_bytes: the chunk size of new files, in bytes; 255 KiB by default.
    :param write_concern: the write concern of each write; None (the default) uses the write concern
        of `db`.
    :param read_preference: the read preference of each read; None (the default) uses the read
        preference of `db`.
    :raises TypeError: `db` or `chunk_size_bytes` has the wrong type.
    :raises ValueError: `chunk_size_bytes` is less than 1.
    :raises ConfigurationError: the write concern is unacknowledged.
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

    def open_upload_stream(
        self,
        filename: str,
        chunk_size_bytes: int | None = None,
        metadata: Document | None = None,
        session: ClientSession | None = None,
    ) -> GridIn:
        """Open a new file for writing. Readers see the file after the file is closed.

        :returns: the new file. The attribute ``_id`` is the ``_id`` of the file.
        :raises TypeError: `filename` is not a string, or `chunk_size_bytes` is not an integer.
        :raises ValueError: `chunk_size_bytes` is less than 1.
        """
        return self._create_file({}, filename, chunk_size_bytes, metadata, session)

    def open_upload_stream_with_id(
        self,
        file_id: Value,
        filename: str,
        chunk_size_bytes: int | None = None,
        metadata: Document | None = None,
        session: ClientSession | None = None,
    ) -> GridIn:
        """Open a new file with a given ``_id`` for writing. Readers see the file after its close.

        :raises TypeError: `filename` is not a string, or `chunk_size_bytes` is not an integer.
        :raises ValueError: `chunk_size_bytes` is less than 1.
        """
        return self._create_file({"_id": file_id}, filename, chunk_size_bytes, metadata, session)

    def _create_file(
        self,
        fields: DocumentDict,
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
            fields["metadata"] = metadata
        file = GridIn(self._collection, session, filename=filename, chunk_size=size, **fields)
        file._storage = self._storage  # all files share the storage, which creates the indexes once
        return file

    def upload_from_stream(
        self,
        filename: str,
        source: object,
        chunk_size_bytes: int | None = None,
        metadata: Document | None = None,
        session: ClientSession | None = None,
    ) -> Value:
        """Upload a file, and return its ``_id``. If the upload fails, the driver removes the stored chunks.

        :raises TypeError: `filename` is not a string, or `source` has the wrong type.
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
        """Upload a file with a given ``_id``. After a failure, the driver removes the stored chunks.

        :raises TypeError: `filename` is not a string, or `source` has the wrong type.
        :raises FileExists: another file has this ``_id``.
        """
        with self.open_upload_stream_with_id(file_id, filename, chunk_size_bytes, metadata, session) as file:
            file.write(source)

    def open_download_stream(self, file_id: Value, session: ClientSession | None = None) -> GridOut:
        """Open a file for reading.

        :raises NoFile: no file has this ``_id``.
        """
        file = GridOut(self._collection, file_id, session=session)
        file.open()
        return file

    def open_download_stream_by_name(
        self, filename: str, revision: int = -1, session: ClientSession | None = None
    ) -> GridOut:
        """Open a revision of a file for reading.

        :raises TypeError: `filename` is not a string, or `revision` is not an integer.
        :raises NoFile: the file or the revision does not exist.
        """
        _check_name("filename", filename)
        with self._storage.time_limit():
            document = find_revision(self._storage, {"filename": filename}, "revision", revision, session)
            if document is not None:
                return GridOut(self._collection, file_document=document, session=session)
            if self._storage.files.find_one({"filename": filename}, {"_id": 1}, session=session) is None:
                raise NoFile(f"no file with the name {filename!r}")
            raise NoFile(f"no version {revision} for filename {filename!r}")

    def download_to_stream(
        self, file_id: Value, destination: SupportsWrite[bytes], session: ClientSession | None = None
    ) -> None:
        """Write the contents of a file to `destination`, and leave `destination` open.

        :raises TypeError: `destination` has no ``write`` method.
        :raises NoFile: no file has this ``_id``.
        :raises CorruptGridFile: a chunk is missing or has the wrong size.
        """
        with self._storage.time_limit(), self.open_download_stream(file_id, session) as file:
            _copy_chunks(file, destination)

    def download_to_stream_by_name(
        self, filename: str, destination: SupportsWrite[bytes], revision: int = -1, session: ClientSession | None = None
    ) -> None:
        """Write the contents of a revision of a file to `destination`, and leave `destination` open.

        :raises TypeError: the type of an argument is wrong, or `destination` has no ``write`` method.
        :raises NoFile: the file or the revision does not exist.
        :raises CorruptGridFile: a chunk is missing or has the wrong size.
        """
        with self._storage.time_limit(), self.open_download_stream_by_name(filename, revision, session) as file:
            _copy_chunks(file, destination)

    def delete(self, file_id: Value, session: ClientSession | None = None) -> None:
        """Remove a file and its chunks.

        :raises NoFile: no file has this ``_id``. The driver still removes chunks with the `files_id`.
        """
        check_session(session)
        with self._storage.time_limit():
            result = self._storage.files.delete_one(id_query(file_id), session=session)
            self._storage.remove_chunks(file_id, session)
        if not result.deleted_count:
            raise NoFile(f"no file could be deleted because none matched {file_id!r}")

    def delete_by_name(self, filename: str, session: ClientSession | None = None) -> None:
        """Remove all revisions of a file, and their chunks.

        :raises TypeError: `filename` is not a string.
        :raises NoFile: no file has this name.
        """
        _check_name("filename", filename)
        check_session(session)
        files, chunks = self._storage.files, self._storage.chunks
        with self._storage.time_limit():
            file_ids = [id_field(each) for each in files.find({"filename": filename}, {"_id": 1}, session=session)]
            if not file_ids:
                raise NoFile(f"no file could be deleted because none matched filename {filename!r}")
            files.delete_many({"_id": {"$in": file_ids}}, session=session)
            chunks.delete_many({"files_id": {"$in": file_ids}}, session=session)

    def rename(self, file_id: Value, new_filename: str, session: ClientSession | None = None) -> None:
        """Change the name of a file.

        :raises TypeError: `new_filename` is not a string.
        :raises NoFile: no file has this ``_id``.
        """
        _check_name("new_filename", new_filename)
        check_session(session)
        change = {"$set": {"filename": new_filename}}
        result = self._storage.files.update_one(id_query(file_id), change, session=session)
        if not result.matched_count:
            raise NoFile(f"no files could be renamed to {new_filename!r} because none matched file_id {file_id!r}")

    def rename_by_name(self, filename: str, new_filename: str, session: ClientSession | None = None) -> None:
        """Change the name of all revisions of a file.

        :param filename: the current name of the file.
        :raises TypeError: `filename` or `new_filename` is not a string.
        :raises NoFile: no file has this name.
        """
        _check_name("filename", filename)
        _check_name("new_filename", new_filename)
        check_session(session)
        change = {"$set": {"filename": new_filename}}
        result = self._storage.files.update_many({"filename": filename}, change, session=session)
        if not result.matched_count:
            raise NoFile(f"no files could be renamed to {new_filename!r} because none matched filename {filename!r}")


def find_revision(
    storage: Storage, query: Document, option: str, revision: int | None, session: ClientSession | None
) -> Value:
    """Return the description of a revision of a file, or None. `option` is the parameter name in error messages."""
    check_session(session)
    if isinstance(revision, bool) or not isinstance(revision, int):
        raise TypeError(f"{option} must be an integer, not {short(revision)}")
    direction, skip = (-1, -revision - 1) if revision < 0 else (1, revision)
    return storage.files.find_one(query, sort=[("uploadDate", direction)], skip=skip, session=session)


def _copy_chunks(file: GridOut, destination: SupportsWrite[bytes]) -> None:
    if not hasattr(destination, "write"):
        raise TypeError(f"destination must be a file that can be written to, not {short(destination)}")
    while chunk := file.readchunk():
        destination.write(chunk)


def _check_name(option: str, name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{option} must be a string, not {short(name)}")

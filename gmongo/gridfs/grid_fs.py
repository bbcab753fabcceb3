"""GridFS: the older interface to the files of a database."""

from __future__ import annotations

from collections.abc import Mapping

from gmongo._documents import Value
from gmongo._parameter_docs import describes_parameters
from gmongo.client_session import ClientSession
from gmongo.database import Database
from gmongo.gridfs.bucket import _PARAMETERS, _FileFinder, find_revision
from gmongo.gridfs.errors import NoFile
from gmongo.gridfs.grid_in import GridIn
from gmongo.gridfs.grid_out import GridOut
from gmongo.gridfs.grid_out_cursor import GridOutCursor
from gmongo.gridfs.storage import Storage, check_acknowledged, check_session, id_query
from gmongo.operations.keys import KeyOrList


@describes_parameters(GridOutCursor, _PARAMETERS)
class GridFS(_FileFinder):
    """Older interface to the files of a database. New programs should use :class:`GridFSBucket`.

    :param database: the database that contains the files.
    :param collection: the bucket's name, and prefix of both collection names; ``"fs"`` by default.
    :raises TypeError: `database` is not a :class:`~gmongo.database.Database`.
    :raises ConfigurationError: the write concern of `database` is unacknowledged.
    """

    def __init__(self, database: Database[Value], collection: str = "fs") -> None:
        if not isinstance(database, Database):
            raise TypeError(f"database must be a Database, not of type {type(database).__name__}")
        check_acknowledged(database, "database")
        self._collection = database[collection]
        self._storage = Storage(self._collection)

    def new_file(self, **kwargs: Value) -> GridIn:
        """Open a new file for writing. Readers see the file after the file is closed.

        :param kwargs: the keyword arguments of :class:`GridIn`: a session, and fields of the
            description, such as ``filename``.
        """
        return GridIn(self._collection, **kwargs)

    def put(self, data: object, **kwargs: Value) -> Value:
        """Upload a file, and return its ``_id``.

            >>> file_id = files.put(b"Hello", filename="greeting")
            >>> files.get(file_id).read()
            b'Hello'

        :param data: the contents: bytes, text (if `encoding` is set), or a file, which the driver reads to its end.
        :param kwargs: the keyword arguments of :meth:`new_file`.
        :raises TypeError: `data` has the wrong type, or `data` is text without an encoding.
        :raises FileExists: another file has this ``_id``.
        """
        with GridIn(self._collection, **kwargs) as file:
            file.write(data)
        return file._id

    def get(self, file_id: Value, session: ClientSession | None = None) -> GridOut:
        """Open a file for reading.

        :raises NoFile: no file has this ``_id``.
        """
        file = GridOut(self._collection, file_id, session=session)
        file.open()
        return file

    def get_version(
        self,
        filename: str | None = None,
        version: int | None = -1,
        session: ClientSession | None = None,
        **kwargs: Value,
    ) -> GridOut:
        """Open a version of a file for reading.

        :param filename: the name of the file; None (the default) matches any name.
        :param version: 0 is the oldest version, 1 the next, -1 (the default) the newest, -2 the second newest.
        :param kwargs: further fields of the description, with the values that the file must have.
        :raises NoFile: the file or the version does not exist.
        """
        query = kwargs if filename is None else {**kwargs, "filename": filename}
        document = find_revision(self._storage, query, "version", -1 if version is None else version, session)
        if document is None:
            raise NoFile(f"no version {version} for filename {filename!r}")
        return GridOut(self._collection, file_document=document, session=session)

    def get_last_version(
        self, filename: str | None = None, session: ClientSession | None = None, **kwargs: Value
    ) -> GridOut:
        """Open the newest version of a file for reading.

        :param filename: the name of the file; None (the default) matches any name.
        :param kwargs: further fields of the description, with the values that the file must have.
        :raises NoFile: no file matches.
        """
        return self.get_version(filename, session=session, **kwargs)

    def delete(self, file_id: Value, session: ClientSession | None = None) -> None:
        """Remove a file and its chunks. Do nothing if the file does not exist."""
        check_session(session)
        with self._storage.time_limit():
            self._storage.files.delete_one(id_query(file_id), session=session)
            self._storage.remove_chunks(file_id, session)

    def list(self, session: ClientSession | None = None) -> list[str]:
        """Return the distinct names of all files that have a name."""
        check_session(session)
        return [name for name in self._storage.files.distinct("filename", session=session) if name is not None]

    def find_one(
        self,
        filter: Value = None,
        session: ClientSession | None = None,
        skip: int = 0,
        limit: int = 0,
        no_cursor_timeout: bool = False,
        sort: KeyOrList | None = None,
        batch_size: int = 0,
    ) -> GridOut | None:
        """Return the first file whose description matches `filter`, or None.

        :param filter: a query for the description, or the ``_id`` of the file. None (the default) matches every file.
        :param limit: a parameter without effect, because the limit is 1.
        :param no_cursor_timeout: a parameter without effect, because no cursor stays open.
        :param batch_size: a parameter without effect, because the limit is 1.
        """
        if filter is not None and not isinstance(filter, Mapping):
            filter = id_query(filter)
        with self.find(filter, skip, limit, no_cursor_timeout, sort, batch_size, session) as cursor:
            return next(cursor.limit(-1), None)

    def exists(self, document_or_id: Value = None, session: ClientSession | None = None, **kwargs: Value) -> bool:
        """Return True if a file matches the parameters. Without parameters, return True if any file exists.

        :param document_or_id: the file's ``_id``, or a query; None (the default) matches any file.
        :param kwargs: fields of the description, with their values. With fields, the method ignores `document_or_id`.
        """
        check_session(session)
        query: Value = kwargs or ({} if document_or_id is None else document_or_id)
        if not isinstance(query, Mapping):
            query = id_query(query)
        return self._storage.files.find_one(query, {"_id": 1}, session=session) is not None

"""The older interface to files."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as short
from typing import Any

from gmongo.client_session import ClientSession
from gmongo.database import Database
from gmongo.gridfs.bucket import revision_of
from gmongo.gridfs.errors import NoFile
from gmongo.gridfs.grid_in import GridIn
from gmongo.gridfs.grid_out import GridOut
from gmongo.gridfs.grid_out_cursor import GridOutCursor
from gmongo.gridfs.storage import Storage, by_id, check_acknowledged, check_session
from gmongo.operations.keys import KeyOrList


class GridFS:
    """Files of a database. New programs are better served by :class:`GridFSBucket`.

    :param database: that they are in.
    :param collection: the name of the root collection.
    :raises ConfigurationError: the database's writes are not acknowledged.
    """

    def __init__(self, database: Database[Any], collection: str = "fs") -> None:
        if not isinstance(database, Database):
            raise TypeError(f"database must be a Database, not {short(database)}")
        check_acknowledged(database, "database")
        self._collection = database[collection]
        self._storage = Storage(self._collection)

    def new_file(self, **kwargs: Any) -> GridIn:
        """A new file to write to; the parameters are those of :class:`GridIn`."""
        return GridIn(self._collection, **kwargs)

    def put(self, data: Any, **kwargs: Any) -> Any:
        """Write a file in one go, and return its ``_id``.

        :param data: bytes, text (with an `encoding`), or a file.
        :param kwargs: the parameters of :class:`GridIn`.
        :raises FileExists: there is a file with that ``_id`` already.
        """
        with GridIn(self._collection, **kwargs) as file:
            file.write(data)
        return file._id

    def get(self, file_id: Any, session: ClientSession | None = None) -> GridOut:
        """A file to read from.

        :raises NoFile: there is none with that ``_id``.
        """
        file = GridOut(self._collection, file_id, session=session)
        file.open()
        return file

    def get_version(
        self,
        filename: str | None = None,
        version: int | None = -1,
        session: ClientSession | None = None,
        **kwargs: Any,
    ) -> GridOut:
        """A version of a file to read from.

        :param version: 0 is the first, 1 the second, …; -1 is the newest, -2 the one before, …
        :param kwargs: further fields of the description, which must be equal.
        :raises NoFile: there is none.
        """
        query = kwargs if filename is None else {**kwargs, "filename": filename}
        document = revision_of(self._storage, query, -1 if version is None else version, session)
        if document is None:
            raise NoFile(f"no version {version} for filename {filename!r}")
        return GridOut(self._collection, file_document=document, session=session)

    def get_last_version(
        self, filename: str | None = None, session: ClientSession | None = None, **kwargs: Any
    ) -> GridOut:
        """The newest version of a file to read from.

        :raises NoFile: there is none.
        """
        return self.get_version(filename, session=session, **kwargs)

    def delete(self, file_id: Any, session: ClientSession | None = None) -> None:
        """Remove a file, if it exists."""
        check_session(session)
        with self._storage.in_time():
            self._storage.files.delete_one(by_id(file_id), session=session)
            self._storage.remove_chunks(file_id, session)

    def list(self, session: ClientSession | None = None) -> list[str]:
        """The names of all files that have one."""
        check_session(session)
        return [name for name in self._storage.files.distinct("filename", session=session) if name is not None]

    def find_one(
        self,
        filter: Any = None,
        session: ClientSession | None = None,
        skip: int = 0,
        limit: int = 0,
        no_cursor_timeout: bool = False,
        sort: KeyOrList | None = None,
        batch_size: int = 0,
    ) -> GridOut | None:
        """The first file whose description matches, or None.

        :param filter: a query, or the ``_id`` of the file.
        """
        if filter is not None and not isinstance(filter, Mapping):
            filter = by_id(filter)
        with self.find(filter, skip, limit, no_cursor_timeout, sort, batch_size, session) as cursor:
            return next(cursor.limit(-1), None)

    def find(
        self,
        filter: Mapping[str, Any] | None = None,
        skip: int = 0,
        limit: int = 0,
        no_cursor_timeout: bool = False,
        sort: KeyOrList | None = None,
        batch_size: int = 0,
        session: ClientSession | None = None,
    ) -> GridOutCursor:
        """A cursor over files; the parameters are those of :class:`GridOutCursor`."""
        return GridOutCursor(self._collection, filter, skip, limit, no_cursor_timeout, sort, batch_size, session)

    def exists(self, document_or_id: Any = None, session: ClientSession | None = None, **kwargs: Any) -> bool:
        """Whether there is such a file; without a parameter, whether there is any.

        :param document_or_id: its ``_id``, or a query for its description.
        :param kwargs: fields of the description, which must be equal.
        """
        check_session(session)
        if kwargs:
            query: Mapping[str, Any] = kwargs
        elif document_or_id is None:
            query = {}
        else:
            query = document_or_id if isinstance(document_or_id, Mapping) else by_id(document_or_id)
        return self._storage.files.find_one(query, {"_id": 1}, session=session) is not None

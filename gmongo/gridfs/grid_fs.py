"""The older interface to files."""

from __future__ import annotations

from collections.abc import Mapping

from gmongo._documents import Document, Value
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
    """Files of a database, by the older interface. New programs are better served by :class:`GridFSBucket`.

    :param database: the database that they are in.
    :param collection: the name of the root collection; ``"fs"`` by default.
    :raises TypeError: `database` is no :class:`~gmongo.database.Database`.
    :raises ConfigurationError: the database's writes are not acknowledged.
    """

    def __init__(self, database: Database[Value], collection: str = "fs") -> None:
        if not isinstance(database, Database):
            raise TypeError(f"database must be a Database, not of type {type(database).__name__}")
        check_acknowledged(database, "database")
        self._collection = database[collection]
        self._storage = Storage(self._collection)

    def new_file(self, **kwargs: Value) -> GridIn:
        """A new file to write to, which readers see when it is closed.

        :param kwargs: the parameters of :class:`GridIn`: fields of the description, such as ``filename``.
        """
        return GridIn(self._collection, **kwargs)

    def put(self, data: object, **kwargs: Value) -> Value:
        """Write a file in one go, and return its ``_id``.

            >>> file_id = files.put(b"Hello", filename="greeting")
            >>> files.get(file_id).read()
            b'Hello'

        :param data: bytes, text (with an `encoding`), or a file, which is read to its end.
        :param kwargs: the parameters of :class:`GridIn`: fields of the description, such as ``filename``.
        :raises TypeError: `data` is something else, or text without an encoding.
        :raises FileExists: there is a file with that ``_id`` already.
        """
        with GridIn(self._collection, **kwargs) as file:
            file.write(data)
        return file._id

    def get(self, file_id: Value, session: ClientSession | None = None) -> GridOut:
        """A file to read from.

        :param file_id: its ``_id``.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
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
        **kwargs: Value,
    ) -> GridOut:
        """A version of a file to read from.

        :param filename: the name of the file; None is any.
        :param version: 0 is the first, 1 the second, …; -1 (the default) is the newest, -2 the one before, …
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :param kwargs: further fields of the description, which must be equal.
        :raises NoFile: there is none.
        """
        query = kwargs if filename is None else {**kwargs, "filename": filename}
        document = revision_of(self._storage, query, "version", -1 if version is None else version, session)
        if document is None:
            raise NoFile(f"no version {version} for filename {filename!r}")
        return GridOut(self._collection, file_document=document, session=session)

    def get_last_version(
        self, filename: str | None = None, session: ClientSession | None = None, **kwargs: Value
    ) -> GridOut:
        """The newest version of a file to read from.

        :param filename: the name of the file; None is any.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :param kwargs: further fields of the description, which must be equal.
        :raises NoFile: there is none.
        """
        return self.get_version(filename, session=session, **kwargs)

    def delete(self, file_id: Value, session: ClientSession | None = None) -> None:
        """Remove a file, if it exists.

        :param file_id: its ``_id``.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        """
        check_session(session)
        with self._storage.in_time():
            self._storage.files.delete_one(by_id(file_id), session=session)
            self._storage.remove_chunks(file_id, session)

    def list(self, session: ClientSession | None = None) -> list[str]:
        """The names of all files that have one.

        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        """
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
        """The first file whose description matches, or None.

        :param filter: a query, or the ``_id`` of the file if it is no mapping. None matches every file.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :param skip: how many files to leave out; 0 by default.
        :param limit: of no effect: it is 1.
        :param no_cursor_timeout: of no effect, as no cursor stays open.
        :param sort: which file is the first: a list of fields and directions, or a mapping. None takes whichever the
            server finds first.
        :param batch_size: of no effect, as there is one file at the most.
        """
        if filter is not None and not isinstance(filter, Mapping):
            filter = by_id(filter)
        with self.find(filter, skip, limit, no_cursor_timeout, sort, batch_size, session) as cursor:
            return next(cursor.limit(-1), None)

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

    def exists(self, document_or_id: Value = None, session: ClientSession | None = None, **kwargs: Value) -> bool:
        """Whether there is such a file; without a parameter, whether there is any.

        :param document_or_id: its ``_id``, or a query for its description; None is any file.
        :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
        :param kwargs: fields of the description, which must be equal; then `document_or_id` is of no effect.
        """
        check_session(session)
        if kwargs:
            query: Document = kwargs
        elif document_or_id is None:
            query = {}
        else:
            query = document_or_id if isinstance(document_or_id, Mapping) else by_id(document_or_id)
        return self._storage.files.find_one(query, {"_id": 1}, session=session) is not None

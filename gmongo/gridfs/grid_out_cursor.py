"""The class GridOutCursor: a cursor over files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from gmongo._documents import Document, Value
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.cursor import Cursor
from gmongo.gridfs.grid_out import GridOut
from gmongo.gridfs.storage import Storage, check_session
from gmongo.operations.keys import KeyOrList


class GridOutCursor(Cursor[Value]):
    """Cursor over the files whose descriptions match a query. Each item is a :class:`GridOut`.

    :meth:`GridFSBucket.find` and :meth:`GridFS.find` create the cursor.

    :param collection: the root collection of the bucket, such as ``database.fs``.
    :param filter: a query like ``{"metadata.owner": "ann"}``; None (the default) matches every file.
    :param skip: the number of files that the server skips; 0 by default.
    :param limit: the maximum number of files; 0 (the default) means no limit.
    :param no_cursor_timeout: True disables the server's timeout for idle cursors (10 minutes); False by default.
    :param sort: a list of pairs (field, direction), or a mapping; None (the default) does not sort the files.
    :param batch_size: the number of descriptions per batch; 0 (the default) lets the server choose.
    :param session: an explicit session without a transaction, or None (the default) for an implicit session.
    :raises TypeError: an argument has the wrong type.
    :raises InvalidOperation: the session is in a transaction.
    """

    def __init__(
        self,
        collection: Collection[Value],
        filter: Document | None = None,
        skip: int = 0,
        limit: int = 0,
        no_cursor_timeout: bool = False,
        sort: KeyOrList | None = None,
        batch_size: int = 0,
        session: ClientSession | None = None,
    ) -> None:
        check_session(session)
        self._root_collection = collection
        super().__init__(
            Storage(collection).files,
            filter,
            skip=skip,
            limit=limit,
            no_cursor_timeout=no_cursor_timeout,
            sort=sort,
            batch_size=batch_size,
            session=session,
        )

    def __iter__(self) -> Iterator[GridOut]:
        return self

    def __next__(self) -> GridOut:
        """Wait for the next file, and return the file. Raise StopIteration if no file remains."""
        return GridOut(self._root_collection, file_document=super().__next__(), session=self.session)

    next = __next__

    def add_option(self, mask: int) -> NoReturn:
        """Raise NotImplementedError, because a cursor over files does not support flags.

        :param mask: a parameter that the method ignores.
        """
        raise NotImplementedError("Method does not exist for GridOutCursor")

    remove_option = add_option

"""Finding files."""

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
    """Iterates over the files whose descriptions match; each is a :class:`GridOut`. Made by :meth:`GridFSBucket.find`;
    the methods of :class:`~gmongo.cursor.Cursor` set further options.

    :param collection: the root collection of the bucket.
    :param filter: a query for descriptions, such as ``{"metadata.owner": "ann"}``; None matches every file.
    :param skip: how many files to leave out at the beginning; 0 by default.
    :param limit: how many files to return at most; 0 (the default) is without limit.
    :param no_cursor_timeout: True keeps the server from closing the cursor when it is unused for ten minutes.
    :param sort: the order: a list of fields of the description and directions, or a mapping. None is the order in which
        the server finds them.
    :param batch_size: how many descriptions a reply brings; 0 (the default) leaves it to the server.
    :param session: to run in, without a transaction; None (the default) takes one for this operation alone.
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
        """The next file.

        :raises StopIteration: there is none.
        """
        document = super().__next__()
        return GridOut(self._root_collection, file_document=document, session=self.session)

    next = __next__

    def add_option(self, mask: int) -> NoReturn:
        """Not possible.

        :param mask: of no effect.
        :raises NotImplementedError: always.
        """
        raise NotImplementedError("Method does not exist for GridOutCursor")

    def remove_option(self, mask: int) -> NoReturn:
        """Not possible.

        :param mask: of no effect.
        :raises NotImplementedError: always.
        """
        raise NotImplementedError("Method does not exist for GridOutCursor")

"""Finding files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.cursor import Cursor
from gmongo.gridfs.grid_out import GridOut
from gmongo.gridfs.storage import Storage, check_session
from gmongo.operations.keys import KeyOrList


class GridOutCursor(Cursor[Any]):
    """Iterates over the files whose descriptions match; each is a :class:`GridOut`.

    :param collection: the root collection of the bucket.
    :param filter: a query for descriptions, such as ``{"metadata.owner": "ann"}``.
    :param skip: leave out so many files.
    :param limit: return at most so many; 0 is without limit.
    :param sort: by which fields of the description.
    :param batch_size: ask for so many descriptions at a time; 0 leaves it to the server.
    :param session: for all reads.
    """

    def __init__(
        self,
        collection: Collection[Any],
        filter: Mapping[str, Any] | None = None,
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

    def __next__(self) -> GridOut:
        document = super().__next__()
        return GridOut(self._root_collection, file_document=document, session=self.session)

    next = __next__

    def add_option(self, mask: int) -> NoReturn:
        """Not possible.

        :raises NotImplementedError: always.
        """
        raise NotImplementedError("Method does not exist for GridOutCursor")

    def remove_option(self, mask: int) -> NoReturn:
        """Not possible.

        :raises NotImplementedError: always.
        """
        raise NotImplementedError("Method does not exist for GridOutCursor")

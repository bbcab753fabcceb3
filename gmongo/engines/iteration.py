"""Iterating over the documents of a cursor, in one greenlet or in several."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import length_hint
from typing import NoReturn, Protocol

from gmongo._documents import Value
from gmongo.engines.server_cursor import ServerCursor


class Iterable(Protocol):
    """A cursor of the API."""

    @property
    def _cursor(self) -> ServerCursor | None: ...

    def _opened(self) -> ServerCursor | None: ...


class _Gate:
    """Stands between two runs of documents. It yields nothing, but gets the next run.

    Several greenlets may wait in it, because the code of a Python function may run several times at once.
    """

    __slots__ = ("_cursor", "is_open")

    def __init__(self, cursor: Iterable) -> None:
        self._cursor = cursor
        self.is_open = True

    def __iter__(self) -> _Gate:
        return self

    def __next__(self) -> NoReturn:
        opened = self._cursor._opened()
        self.is_open = opened is not None and opened.advance()
        raise StopIteration


def iterate(cursor: Iterable) -> Iterator[Value]:
    """Iterate over all documents that no greenlet has taken.

    Greenlets may share the iterator. An error does not end it.
    """
    # The documents of a run come without a call of a Python function. `chain` changes its state only after a step of
    # the gate, and then it does not switch, so that a second greenlet may enter it while the first one waits.
    return chain.from_iterable(_runs(cursor))


def _runs(cursor: Iterable) -> Iterator[Iterator[Value]]:
    """Yield the documents that have arrived, or else the gate. Does not switch: no greenlet enters it twice."""
    gate = _Gate(cursor)
    while gate.is_open:
        opened = cursor._cursor
        if opened is None:
            yield gate
        elif length_hint(opened.documents):
            yield opened.documents
        elif opened.has_ended:
            return
        else:
            yield gate

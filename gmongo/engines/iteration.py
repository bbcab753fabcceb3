"""Iterating over the documents of a cursor, in one greenlet or in several."""

from __future__ import annotations

from collections.abc import Iterator
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

    cursor: Iterable
    is_open = True

    def __iter__(self) -> _Gate:
        return self

    def __next__(self) -> NoReturn:
        opened = self.cursor._opened()
        self.is_open = opened is not None and (length_hint(opened.documents) > 0 or opened.advance())
        raise StopIteration


def runs(cursor: Iterable) -> Iterator[Iterator[Value]]:
    """Yield the documents that have arrived, or else the gate, for ``itertools.chain.from_iterable``.

    The documents of a run come without a call of a Python function. Greenlets may share the chain: this generator does
    not switch, so that no greenlet enters it twice. The chain changes its state only after a step of the gate, without
    a switch, so that a second greenlet may enter the chain while the first one waits in the gate.
    """
    gate = _Gate()  # without a constructor, which would cost a call for each cursor
    gate.cursor = cursor
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

"""Iteration over the documents of a cursor, in one or more greenlets."""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import NoReturn, Protocol

from gmongo._documents import Value
from gmongo.engines.server_cursor import ServerCursor


class Iterable(Protocol):
    """Cursor of the public API."""

    @property
    def _cursor(self) -> ServerCursor | None: ...

    def _opened(self) -> ServerCursor | None: ...


class _Gate:
    """Iterator without items that fetches the next run of documents.

    Several greenlets may wait in it, as a Python function may run several times concurrently.
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
    """Yield the available documents, or else the gate, for ``itertools.chain.from_iterable``.

    The chain returns the documents of a run without a call of a Python function. Greenlets may share the chain: this
    generator does not switch, so that no second greenlet enters it. The chain changes its state only after a step of
    the gate, without a switch. Therefore a second greenlet may enter the chain while the first waits in the gate.
    """
    gate = _Gate()  # without a constructor, to save a call for each cursor
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

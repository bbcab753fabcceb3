"""Iteration over the documents of a cursor, in one or more greenlets."""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import NoReturn, Protocol

from gmongo._documents import Value
from gmongo._truncated_repr import short
from gmongo.engines.server_cursor import ServerCursor
from gmongo.errors import ConfigurationError
from gmongo.execution.executor import Executor


class PublicCursor(Protocol):
    """The attributes of a public cursor that :func:`document_runs` uses."""

    @property
    def _cursor(self) -> ServerCursor | None: ...

    def _server_cursor(self) -> ServerCursor | None: ...


class _FetchGate:
    """Iterator that fetches the next batch, but yields no document.

    Several greenlets may wait in ``__next__``, whereas a generator would reject concurrent calls.
    """

    cursor: PublicCursor
    is_open = True

    def __iter__(self) -> _FetchGate:
        return self

    def __next__(self) -> NoReturn:
        cursor = self.cursor._server_cursor()
        self.is_open = cursor is not None and (length_hint(cursor.documents) > 0 or cursor.advance())
        raise StopIteration


def document_runs(cursor: PublicCursor) -> Iterator[Iterator[Value]]:
    """Yield iterators for ``itertools.chain.from_iterable``: available documents, or a gate that fetches a batch.

    The chain returns available documents without a call of a Python function. Several greenlets may
    share the chain, because the generator does not switch greenlets. The chain changes its state,
    without a switch, only after ``__next__`` of the gate has ended. Therefore another greenlet can
    use the chain while ``__next__`` of the gate fetches a batch.
    """
    gate = _FetchGate()  # for speed, the class has no constructor
    gate.cursor = cursor
    while gate.is_open:
        server_cursor = cursor._cursor
        if server_cursor is None:
            yield gate
        elif length_hint(server_cursor.documents):
            yield server_cursor.documents
        elif server_cursor.has_ended:
            return
        else:
            yield gate


CURSOR_LIFETIME = "cursor_lifetime"
ITERATION = "iteration"


def limits_each_iteration(mode: object, executor: Executor, tailable: bool, writes: bool = False) -> bool:
    """Return True for a time limit of each iteration, and False for a time limit of the whole cursor.

    `mode` is the argument ``timeout_mode``. `writes` is True if the command writes the result to a
    collection.
    """
    if mode is None:
        return tailable
    if mode not in (CURSOR_LIFETIME, ITERATION):
        raise ValueError(f'timeout_mode must be "{CURSOR_LIFETIME}" or "{ITERATION}", not {short(mode)}')
    if not executor.has_limit:
        raise ConfigurationError("timeout_mode needs a time limit: set timeout_ms")
    if tailable and mode == CURSOR_LIFETIME:
        raise ConfigurationError(f'a tailable cursor has no end: its timeout_mode must be "{ITERATION}"')
    if writes and mode == ITERATION:
        raise ConfigurationError(
            f'a pipeline with $out or $merge has no iteration: timeout_mode cannot be "{ITERATION}"'
        )
    return bool(mode == ITERATION)

"""One try of an operation."""

from __future__ import annotations

from typing import Any

from gmongo.execution.operation import Operation
from gmongo.execution.sessions import Session
from gmongo.execution.transaction import State, Transaction
from gmongo.wire.address import Address


class Attempt:
    """One try of an operation, and what became of it.

    :param operation: to run.
    :param session: to run it in, if any.
    :param deadline: when the operation must have ended, on the clock of :func:`time.monotonic`.
    """

    __slots__ = (
        "address",
        "deadline",
        "is_mongos",
        "max_wire_version",
        "min_round_trip_time",
        "numbered",
        "operation",
        "reply",
        "selector",
        "session",
        "starts",
        "transaction",
    )

    def __init__(self, operation: Operation, session: Session | None, deadline: float | None) -> None:
        self.operation = operation
        self.session = session
        self.deadline = deadline
        self.selector: Any = operation.selector
        self.address: Address | None = None  # the server selected
        self.max_wire_version = 0  # of that server
        self.is_mongos = False  # whether it is one
        self.min_round_trip_time = 0.0  # to that server, in seconds
        self.reply: dict[str, Any] | None = None
        self.numbered = False  # whether it is a write with a transaction number, which may be tried again
        self.transaction: Transaction | None = None
        self.starts = False  # whether it is the first of the transaction
        transaction = None if session is None else session.transaction
        if transaction is not None and (transaction.active or operation.ends_transaction):
            self.transaction = transaction
            self.starts = transaction.state is State.STARTING
            self.selector = operation.selector_in(transaction)

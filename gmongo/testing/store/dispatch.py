"""Execute a command as a statement of a transaction, as a retryable write, or without a transaction number."""

from __future__ import annotations

from typing import Any

from gmongo.testing.command import CommandError, Request, error
from gmongo.testing.store.access import Access, PastAccess
from gmongo.testing.store.commands import COMMANDS, Command
from gmongo.testing.store.context import CommandContext
from gmongo.testing.store.data import Document
from gmongo.testing.store.end_transactions import abort, create_recovery_token, end_transaction
from gmongo.testing.store.errors import (
    TRANSIENT_LABEL,
    bad_value,
    illegal_operation,
    invalid_options,
    no_such_transaction,
    transaction_too_old,
)
from gmongo.testing.store.sessions import Session
from gmongo.testing.store.state import State
from gmongo.testing.store.transactions import Transaction

# The commands of cursors need no new snapshot, because each cursor keeps its snapshot.
_CURSOR_COMMANDS = frozenset({"getMore", "killCursors"})
_READ_CONCERN_LEVELS = frozenset({"local", "majority", "linearizable", "available", "snapshot"})
# The error codes LockTimeout, WriteConflict, SnapshotUnavailable, NoSuchTransaction and
# SnapshotTooOld. After these errors, a client may retry the whole transaction.
_TRANSIENT_CODES = frozenset({24, 112, 246, 251, 239})


def execute(state: State, request: Request) -> Document:
    """Execute a command, and return the reply."""
    command = COMMANDS[request.name]
    check_concerns(state, request, command)
    session = state.sessions.use(request.session) if request.session is not None else None
    if request.transaction_number is None:
        return _run_without_number(state, request, command)
    if not state.has_oplog:
        raise illegal_operation("Transaction numbers are only allowed on a replica set member or mongos")
    assert session is not None
    _check_out_session(session)
    try:
        if request.in_transaction:
            return _run_in_transaction(state, request, command, session)
        return _run_retryable_write(state, request, command, session)
    finally:
        session.idle.set()


def _check_out_session(session: Session) -> None:
    """Wait until no other command with a transaction number runs in the session, and mark the session as busy."""
    while not session.idle.is_set():
        session.idle.wait()
    session.idle.clear()


def check_concerns(state: State, request: Request, command: Command) -> None:
    """Check the read concern, the write concern and the transaction fields of a command."""
    read_concern = request.body.get("readConcern") or {}
    level = read_concern.get("level")
    if level is not None and level not in _READ_CONCERN_LEVELS:
        raise bad_value(f"Enumeration value '{level}' for field 'readConcern.level' is not a valid value.")
    if "atClusterTime" in read_concern and level != "snapshot":
        raise invalid_options("readConcern level must be 'snapshot' to use atClusterTime")
    if request.in_transaction and request.transaction_number is not None:
        ends_transaction = request.name in ("commitTransaction", "abortTransaction")
        if request.body.get("startTransaction") if ends_transaction else not command.in_transactions:
            raise error(263, f"Cannot run '{request.name}' in a multi-document transaction.")
        if "writeConcern" in request.body and not ends_transaction:
            raise invalid_options("writeConcern is not allowed within a multi-statement transaction")
        if read_concern and not request.body.get("startTransaction"):
            raise invalid_options("Only the first command in a transaction may specify a readConcern")
        if level not in (None, "local", "majority", "snapshot"):
            raise invalid_options("The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in "
                                  "order to run in a transaction")  # fmt: skip
        return
    if level not in (None, "local", "available") and not command.accepts_read_concern:
        raise invalid_options(f'Command {request.name} does not support {{ readConcern: {{ level: "{level}" }} }}')
    if level == "snapshot":
        _check_snapshot(state, request, command)


def _check_snapshot(state: State, request: Request, command: Command) -> None:
    if not state.has_oplog:
        raise error(123, "Cannot specify 'snapshot' readConcern on a standalone node")
    if state.version < (5, 0) or not command.accepts_snapshot:
        raise invalid_options(f"readConcern level snapshot is not supported by {request.name} outside of "
                              "multi-document transactions")  # fmt: skip


def _run_without_number(state: State, request: Request, command: Command) -> Document:
    read_concern = request.body.get("readConcern") or {}
    is_snapshot_read = command.accepts_snapshot and read_concern.get("level") == "snapshot"
    if is_snapshot_read and request.name not in _CURSOR_COMMANDS:
        time = read_concern.get("atClusterTime", state.now())
        return command.run(CommandContext(state, request, PastAccess(state, time), time))
    return command.run(CommandContext(state, request, Access(state)))


def _run_retryable_write(state: State, request: Request, command: Command, session: Session) -> Document:
    number = request.transaction_number
    assert number is not None
    if not command.is_retryable:
        raise error(
            50768,
            "txnNumber may only be provided for multi-document transactions and retryable write commands. "
            f"autocommit:false was not provided, and {request.name} is not a retryable write command.",
        )
    if number < session.number:
        raise transaction_too_old(f"txnNumber {number} is below the number {session.number} of the session")
    if number == session.number:
        if session.transaction is not None:
            raise error(217, f"txnNumber {number} belongs to a transaction")
        if session.reply is not None:
            return dict(session.reply)
    _check_single_document_writes(request)
    if number > session.number:
        _use_new_number(state, session, number)
    reply = command.run(CommandContext(state, request, Access(state)))
    session.reply = {**reply, **_create_retry_fields(request)}
    return reply


def _create_retry_fields(request: Request) -> Document:
    """Return the fields with which a server marks the reply to a retried write."""
    if request.name.lower() == "findandmodify":
        return {"retriedStmtId": request.body.get("stmtId", 0)}
    return {"retriedStmtIds": list(range(len(_find_statements(request))))}


def _find_statements(request: Request) -> list[Any]:
    for name in ("documents", "updates", "deletes", "ops"):
        if name in request.body:
            statements: list[Any] = request.body[name]
            return statements
    return [request.body]


def _check_single_document_writes(request: Request) -> None:
    for statement in _find_statements(request):
        writes_many = (
            isinstance(statement, dict)
            and "documents" not in request.body
            and (statement.get("multi") or ("deletes" in request.body and not statement.get("limit")))
        )
        if writes_many:
            raise invalid_options("Cannot use retryable writes with multi=true or limit=0")


def _use_new_number(state: State, session: Session, number: int) -> None:
    if session.transaction is not None:
        abort(state, session)
    session.number, session.transaction, session.reply = number, None, None


def _run_in_transaction(state: State, request: Request, command: Command, session: Session) -> Document:
    number = request.transaction_number
    assert number is not None
    if request.name in ("commitTransaction", "abortTransaction"):
        return end_transaction(state, request, session)
    if number < session.number:
        raise transaction_too_old(f"Cannot start transaction {number} on session because a newer transaction with "
                                  f"txnNumber {session.number} has already started on this session.")  # fmt: skip
    transaction = (
        _begin_transaction(state, request, session)
        if request.body.get("startTransaction")
        else _find_transaction(state, request, session)
    )
    level = (request.body.get("readConcern") or {}).get("level")
    if level not in (None, "local") and request.name in ("create", "createIndexes"):
        abort(state, session)
        raise invalid_options(f"Command {request.name} does not support this transaction's readConcern")
    return _run_statement(state, request, command, session, transaction)


def _begin_transaction(state: State, request: Request, session: Session) -> Transaction:
    number = request.transaction_number
    assert number is not None
    if number == session.number:
        message = f"Only servers in a sharded cluster can start a new transaction at the active number {number}"
        raise error(117, message)
    start_time = (request.body.get("readConcern") or {}).get("atClusterTime", state.now())
    _use_new_number(state, session, number)
    transaction = Transaction(state, request.body["lsid"], number, request.member, request.connection, start_time)
    session.transaction = transaction
    return transaction


def _find_transaction(state: State, request: Request, session: Session) -> Transaction:
    number, transaction = request.transaction_number, session.transaction
    if transaction is None or number != session.number:
        raise no_such_transaction(f"transaction {number} is not in progress, the session's number is {session.number}")
    if state.sharded and transaction.member != request.member:
        raise no_such_transaction(f"cannot continue txnId {number} for session with another mongos")
    if transaction.status == "committed":
        raise error(256, f"Transaction {number} has been committed.")
    if transaction.status == "aborted":
        raise no_such_transaction(f"Transaction with {{ txnNumber: {number} }} has been aborted.")
    return transaction


def _run_statement(
    state: State, request: Request, command: Command, session: Session, transaction: Transaction
) -> Document:
    try:
        reply = command.run(CommandContext(state, request, transaction))
    except CommandError as error:
        abort(state, session)
        if error.code in _TRANSIENT_CODES and TRANSIENT_LABEL not in error.labels:
            error.labels.append(TRANSIENT_LABEL)
        raise
    if reply.get("writeErrors") or reply.get("nErrors"):
        abort(state, session)
    return {**reply, **create_recovery_token(state)}

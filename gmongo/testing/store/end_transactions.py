"""The commands of sessions, and the commands and functions that end transactions."""

from __future__ import annotations

from bson.binary import Binary

from gmongo import _random
from gmongo.testing.command import CommandError, Request, error
from gmongo.testing.store.context import CommandContext
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import TRANSIENT_LABEL, illegal_operation, no_such_transaction, transaction_too_old
from gmongo.testing.store.sessions import TIMEOUT_SECONDS, Session
from gmongo.testing.store.state import State
from gmongo.testing.store.transactions import Transaction
from gmongo.testing.unsupported import not_supported


def create_recovery_token(state: State) -> Document:
    """Return the field ``recoveryToken``, which only a mongos adds to replies in a transaction."""
    return {"recoveryToken": {"recoveryShardId": "shard0"}} if state.sharded else {}


def abort(state: State, session: Session) -> None:
    """Abort the open transaction of a session, and close the cursors of the transaction."""
    if session.transaction is not None:
        session.transaction.abort()
        _kill_cursors(state, session, session.transaction)


def _kill_cursors(state: State, session: Session, transaction: Transaction) -> None:
    owner = session.id, transaction.number
    state.cursors.kill_where(lambda cursor: (cursor.session, cursor.transaction) == owner)


def end_transaction(state: State, request: Request, session: Session) -> Document:
    """Execute ``commitTransaction`` or ``abortTransaction``."""
    if request.database != "admin":
        raise error(13, f"{request.name} may only be run against the admin database.")
    transaction = _find_transaction(state, request, session)
    is_commit = request.name == "commitTransaction"
    if transaction.status == "aborted":
        raise no_such_transaction(f"Transaction with {{ txnNumber: {transaction.number} }} has been aborted.")
    if is_commit:
        _commit_transaction(state, session, transaction)
    elif transaction.status == "committed":
        raise error(256, f"Transaction {transaction.number} has been committed.")
    else:
        abort(state, session)
    return create_recovery_token(state)


def _commit_transaction(state: State, session: Session, transaction: Transaction) -> None:
    try:
        transaction.commit()
    except CommandError as error:
        error.labels.append(TRANSIENT_LABEL)
        raise
    finally:
        _kill_cursors(state, session, transaction)


def _find_transaction(state: State, request: Request, session: Session) -> Transaction:
    number, transaction = request.transaction_number, session.transaction
    if number is not None and number < session.number:
        raise transaction_too_old(f"Transaction {number} is older than {session.number}")
    if transaction is None or number != session.number:
        raise no_such_transaction(f"Given transaction number {number} does not match any in-progress transactions.")
    if state.sharded and transaction.member != request.member:
        if not request.body.get("recoveryToken"):
            raise no_such_transaction(f"Transaction {number} was not started on this mongos, and there is no "
                                      "recoveryToken")  # fmt: skip
        # A mongos that did not start the transaction can only return the outcome of the
        # transaction. Therefore the command aborts an open transaction.
        abort(state, session)
    return transaction


def refuse_outside_transaction(context: CommandContext) -> Document:
    """Raise the error of a ``commitTransaction`` or ``abortTransaction`` without a transaction number."""
    if not context.state.has_oplog:
        raise illegal_operation("Transaction numbers are only allowed on a replica set member or mongos")
    raise error(125, f"{context.request.name} must be run within a transaction")


def end_sessions(context: CommandContext) -> Document:
    """Execute ``endSessions``."""
    for lsid in _parse_session_ids(context):
        end_session(context.state, lsid)
    return {}


def refresh_sessions(context: CommandContext) -> Document:
    """Execute ``refreshSessions``."""
    for lsid in _parse_session_ids(context):
        context.state.sessions.use(lsid)
    return {}


def kill_sessions(context: CommandContext) -> Document:
    """Execute ``killSessions``. If the command contains an empty list, kill all sessions."""
    for lsid in _parse_session_ids(context) or [session.id for session in context.state.sessions]:
        kill_session(context.state, lsid)
    context.state.wake()
    return {}


def kill_all_sessions(context: CommandContext) -> Document:
    """Execute ``killAllSessions`` or ``killAllSessionsByPattern``."""
    if any(context.body[context.request.name]):
        raise not_supported("a kill of sessions by user or pattern")
    for session in context.state.sessions:
        kill_session(context.state, session.id)
    context.state.wake()
    return {}


def start_session(context: CommandContext) -> Document:
    """Execute ``startSession``."""
    lsid = Binary(_random.uuid4().bytes, 4)
    context.state.sessions.use(bytes(lsid))
    return {"id": {"id": lsid}, "timeoutMinutes": TIMEOUT_SECONDS // 60}


def end_session(state: State, lsid: bytes) -> None:
    """Remove a session. Close the cursors and abort the transaction of the session."""
    session = state.sessions.remove(lsid)
    if session is not None:
        abort(state, session)
    state.cursors.kill_where(lambda cursor: cursor.session == lsid)


def kill_session(state: State, lsid: bytes) -> None:
    """Abort the transaction and close the cursors of a session, but keep the session."""
    session = state.sessions.get(lsid)
    if session is not None:
        abort(state, session)
    state.cursors.kill_where(lambda cursor: cursor.session == lsid)


def _parse_session_ids(context: CommandContext) -> list[bytes]:
    return [bytes(session["id"]) for session in context.body[context.request.name] if session]

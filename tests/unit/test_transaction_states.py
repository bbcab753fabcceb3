"""States of a transaction, error labels of failed operations, and calls of observers at the end of
a transaction.
"""

from __future__ import annotations

from copy import copy
from typing import Any
from unittest.mock import Mock

import pytest
from gevent import GreenletExit

from gmongo.cmap.connection import Purpose
from gmongo.engines.transaction import TransactionEnd
from gmongo.errors import (
    AutoReconnect,
    InvalidOperation,
    PyMongoError,
)
from gmongo.execution.transaction import State, Transaction, TransactionSettings, is_result_unknown
from gmongo.sdam.selection import WRITABLE
from tests.support.cases import with_cases

TRANSIENT_LABEL, UNKNOWN_RESULT_LABEL = "TransientTransactionError", "UnknownTransactionCommitResult"


def with_labels(error: PyMongoError, *labels: str) -> PyMongoError:
    for label in labels:
        error._add_error_label(label)
    return error


@with_cases
@pytest.mark.parametrize("is_overloaded", [False, True])
def test_commit_error_with_unknown_result_has_label_and_unpins_transaction(
    error: PyMongoError, labels: list[str], result_is_unknown: bool, is_overloaded: bool
) -> None:
    error = with_labels(copy(error), *labels)
    assert is_result_unknown(error) is result_is_unknown
    transaction = started_transaction()
    transaction.record_command()
    transaction.begin_commit()
    pin = transaction.pin = Mock()
    transaction.pinned_address = ("h", 1)
    transaction.record_failed_commit(error, is_overloaded)
    assert error.has_error_label(UNKNOWN_RESULT_LABEL) is result_is_unknown
    assert (transaction.pinned_address, transaction.pin) == ((None, None) if result_is_unknown else (("h", 1), pin))
    assert ("w" in transaction.end_write_concern) is not is_overloaded
    if result_is_unknown:
        pin.release.assert_called_once_with(None)
        assert pin.connection.purpose is Purpose.CURSOR


@with_cases
def test_network_error_of_operation_is_labelled_transient(error: PyMongoError, is_transient: bool) -> None:
    Transaction.label_error(error)
    assert error.has_error_label(TRANSIENT_LABEL) is is_transient


def started_transaction(read_concern: Any = None, write_concern: Any = None) -> Transaction:
    transaction = Transaction()
    transaction.start(TransactionSettings(read_concern or {}, write_concern or {}, WRITABLE, None))
    return transaction


def test_transaction_continues_after_interrupted_commit_or_abort_unless_command_was_sent() -> None:
    for end in ("begin_commit", "begin_abort"):
        transaction = started_transaction()
        transaction.record_command()
        assert getattr(transaction, end)() is True
        transaction.record_interrupted_end()
        assert transaction.state is State.IN_PROGRESS
        assert getattr(transaction, end)() is True
        end_state = transaction.state
        transaction.record_command()
        transaction.record_interrupted_end()
        assert transaction.state is end_state
        transaction.start(transaction.settings)
        transaction.record_interrupted_end()
        assert transaction.state is State.IN_PROGRESS


@pytest.mark.parametrize("is_broken", [False, True])
def test_abort_sends_nothing_if_pinned_connection_is_broken(is_broken: bool) -> None:
    transaction = started_transaction()
    transaction.record_command()
    transaction.pin = Mock()
    transaction.pin.connection.error = AutoReconnect("x") if is_broken else None
    assert transaction.begin_abort() is not is_broken


@with_cases
def test_state_permits_or_rejects_commit_and_abort(state: str, commit_outcome: Any, abort_outcome: Any) -> None:
    for end, outcome in (("begin_commit", commit_outcome), ("begin_abort", abort_outcome)):
        transaction = Transaction()
        assert (transaction.state, transaction.active, transaction.observer_data) == (State.NONE, False, None)
        transaction.state = State[state]
        assert transaction.active is (state in ("STARTING", "IN_PROGRESS"))
        if isinstance(outcome, str):
            with pytest.raises(InvalidOperation) as caught:
                getattr(transaction, end)()
            assert str(caught.value) == outcome and transaction.state is State[state]
        else:
            assert getattr(transaction, end)() is outcome
            end_state = State.ABORTED if end == "begin_abort" else State.COMMITTED if outcome else State.COMMITTED_EMPTY
            assert transaction.state is end_state
            is_repeated_commit = end == "begin_commit" and state == "COMMITTED"
            assert (transaction.end_write_concern.get("w") == "majority") is is_repeated_commit


@pytest.mark.parametrize("transaction_is_active", [False, True])
@pytest.mark.parametrize("error", [None, AutoReconnect("x"), GreenletExit()])
def test_observer_receives_end_of_transaction_unless_transaction_continues(
    error: BaseException | None, transaction_is_active: bool
) -> None:
    executor, state = Mock(), Mock()
    state.transaction.active = transaction_is_active
    executor.run.side_effect = error
    transaction_end, operation = TransactionEnd(executor, state), Mock()
    if error is None:
        transaction_end._run(operation, 5.0)
    else:
        with pytest.raises(type(error)):
            transaction_end._run(operation, 5.0)
    executor.run.assert_called_once_with(operation, state, 5.0)
    continues = isinstance(error, GreenletExit) and transaction_is_active
    assert [call.args for call in executor.transaction_ended.call_args_list] == (
        [] if continues else [(state.transaction, error)]
    )
    assert state.transaction.record_interrupted_end.called is isinstance(error, GreenletExit)


@pytest.mark.parametrize("sends_command", [False, True])
def test_observer_receives_end_of_transaction_that_sends_no_command(sends_command: bool) -> None:
    for name in ("commit", "abort"):
        executor, state = Mock(), Mock()
        state.server_session.transaction_number = 1
        getattr(state.transaction, f"begin_{name}").return_value = sends_command
        getattr(TransactionEnd(executor, state), name)(5.0)
        assert executor.run.called is sends_command and executor.transaction_ended.called
        executor.transaction_ended.assert_called_with(state.transaction, None)

"""Every sequence of four transaction steps sends the commands and raises the errors that a model predicts."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from gmongo.errors import InvalidOperation
from tests.support.clients import Client
from tests.support.recorder import Recorder

STEPS = ("start", "insert", "commit", "abort")


class TransactionModel:
    """A model of a session's transaction states, which follows the Transactions specification."""

    def __init__(self) -> None:
        self.state = "none"
        self.number = 0
        self.is_second_commit = False

    def start(self) -> Any:
        if self.state in ("starting", "in progress"):
            return "Transaction already in progress"
        self.state, self.is_second_commit = "starting", False
        self.number += 1
        return None

    def insert(self) -> Any:
        if self.state == "starting":
            self.state = "in progress"
            return {"insert": "c", "txnNumber": self.number, "startTransaction": True, "autocommit": False}
        if self.state == "in progress":
            return {"insert": "c", "txnNumber": self.number, "autocommit": False}
        self.state = "none"
        self.number += 1  # a retryable write outside of a transaction has a new transaction number
        return {"insert": "c", "txnNumber": self.number}

    def commit(self) -> Any:
        if self.state == "none":
            return "No transaction started"
        if self.state == "aborted":
            return "Cannot call commitTransaction after calling abortTransaction"
        if self.state in ("starting", "committed empty"):
            self.state = "committed empty"
            return None
        second, self.state = self.state == "committed", "committed"
        concern = {"writeConcern": {"wtimeout": 10_000, "w": "majority"}} if second else {}
        return {"commitTransaction": 1, "txnNumber": self.number, "autocommit": False, **concern}

    def abort(self) -> Any:
        if self.state == "none":
            return "No transaction started"
        if self.state == "aborted":
            return "Cannot call abortTransaction twice"
        if self.state in ("committed", "committed empty"):
            return "Cannot call abortTransaction after calling commitTransaction"
        sends, self.state = self.state == "in progress", "aborted"
        return {"abortTransaction": 1, "txnNumber": self.number, "autocommit": False} if sends else None


FIELDS = {
    *("insert", "commitTransaction", "abortTransaction"),
    *("txnNumber", "startTransaction", "autocommit", "writeConcern"),
}


def sent_commands(recorder: Recorder) -> list[dict[str, Any]]:
    """Return the fields about transactions events_named each command that the client has sent since the
    previous call.
    """
    commands = [event.command for event in recorder.events_named("CommandStarted")]
    recorder.clear()
    return [{name: value for name, value in command.items() if name in FIELDS} for command in commands]


@pytest.mark.parametrize("first_step", STEPS)
def test_each_transaction_step_sends_command_or_raises_error_of_model(
    first_step: str, client: Client, recorder: Recorder
) -> None:
    client.db.c.insert_one({})
    recorder.clear()
    for rest in product(STEPS, repeat=3):
        with client.start_session() as session:
            calls = {
                "start": session.start_transaction,
                "insert": lambda session=session: client.db.c.insert_one({}, session=session),
                "commit": session.commit_transaction,
                "abort": session.abort_transaction,
            }
            model, offset = TransactionModel(), None
            for step in (first_step, *rest):
                expected = getattr(model, step)()
                try:
                    calls[step]()
                except InvalidOperation as error:
                    assert (str(error), sent_commands(recorder)) == (expected, []), (first_step, rest)
                    continue
                commands = sent_commands(recorder)
                # Subtract the transaction number at which the client reused the server session.
                for command in commands:
                    offset = command["txnNumber"] - model.number if offset is None else offset
                    command["txnNumber"] -= offset
                assert commands == ([] if expected is None else [expected]), (first_step, rest)
                assert session.in_transaction == (model.state in ("starting", "in progress"))
        recorder.clear()  # remove the abortTransaction that the end of the session may have sent

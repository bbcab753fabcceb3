"""Operations reject invalid sessions. A session stores the time of its last command."""

from __future__ import annotations

import pytest

from gmongo import _clock
from gmongo.errors import InvalidOperation
from gmongo.testing import Deployment
from tests.support.clients import Client, Connect


def test_session_that_is_no_client_session_raises_value_error(client: Client) -> None:
    with pytest.raises(ValueError, match="must be a ClientSession or None, not an instance of int"):
        client.db.c.find_one(session=5)  # type: ignore[arg-type]


def test_operation_of_other_client_in_bound_session_raises_invalid_operation(
    deployment: Deployment, client: Client, connect: Connect
) -> None:
    other = connect(deployment)
    message = "inside bind(), only the client of the bound session can run operations"
    with client.start_session() as session, session.bind():
        client.db.c.insert_one({"_id": 1})
        for call in (other.db.c.find_one, other.db.command, lambda name: list(other.db.c.find())):
            with pytest.raises(InvalidOperation) as caught:
                call("ping")
            assert str(caught.value) == message
    assert other.db.c.find_one() == {"_id": 1}


@pytest.mark.parametrize("mode", ["alone", "in a transaction"])
def test_each_command_updates_last_use_of_session(client: Client, mode: str) -> None:
    """Check that each command updates the time of the last use of its session.

    The server expires a session a fixed time after the last command in the session.
    """
    client.db.c.insert_many([{} for _ in range(3)])
    with client.start_session() as session:
        if mode == "in a transaction":
            session.start_transaction()
        cursor = client.db.c.find(batch_size=1, session=session)
        next(cursor)
        server_session = session._state.server_session
        for _ in range(2):
            server_session.last_used -= 20 * 60
            next(cursor)
            assert server_session.last_used == pytest.approx(_clock.monotonic(), abs=1)

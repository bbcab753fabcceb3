"""The class `Authentication` sets time limits. The tests use mocks instead of a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from gmongo.cmap import handshake
from gmongo.cmap.connection import Connection
from gmongo.cmap.handshake import Authentication
from tests.support.cases import with_cases


class AuthenticationSetup:
    def __init__(self, connect_timeout: float | None = 5.0, extra_login_seconds: float = 0.0) -> None:
        self.connection = Connection(("h", 1))
        self.login = Mock(extra_login_seconds=extra_login_seconds, extends_deadline=False)
        self.authenticator: Any = Mock()
        self.authenticator.login.return_value = self.login
        self.authenticator.credential = SimpleNamespace(username="anna")
        self.options: Any = SimpleNamespace(connect_timeout=connect_timeout, server_api={"apiVersion": "1"})
        self.authentication = Authentication(self.connection, self.options, self.authenticator)


@pytest.fixture
def recorded_limits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that records, in seconds, each time limit of the authentication."""
    recorded: list[Any] = []

    def interrupt_after(seconds: Any, _error: Any) -> Any:
        recorded.append(seconds)
        return Mock(__enter__=Mock(), __exit__=Mock(return_value=None))

    monkeypatch.setattr(handshake, "interrupt_after", interrupt_after)
    return recorded


@pytest.mark.parametrize("is_arbiter", [False, True])
def test_first_authentication_extends_connect_timeout_except_for_arbiter(is_arbiter: bool) -> None:
    connect_limit = Mock()
    setup = AuthenticationSetup(extra_login_seconds=60.0)
    hello: Any = SimpleNamespace(reply={"ok": 1, "speculativeAuthenticate": 1, "saslSupportedMechs": 2})
    if is_arbiter:
        hello.reply["arbiterOnly"] = True
    original_reply = dict(hello.reply)
    setup.authentication.authenticate(hello, connect_limit, 7.0)
    assert hello.reply == {"ok": 1, **({"arbiterOnly": True} if is_arbiter else {})}
    setup.authenticator.login.assert_called_once_with("h")
    if is_arbiter:
        assert (
            not setup.login.authenticate.called
            and setup.connection.authentication is None
            and not connect_limit.begin_stage.called
        )
        return
    setup.login.authenticate.assert_called_once_with(setup.authentication._run_command, original_reply, 7.0)
    assert setup.connection.authentication is setup.authentication
    connect_limit.begin_stage.assert_called_once_with(60.0)
    assert setup.authentication.hello_fields() is setup.login.hello_fields.return_value


@with_cases
@pytest.mark.parametrize("is_human", [False, True])
def test_shorter_of_operation_and_connect_timeout_limits_reauthentication(
    recorded_limits: list[Any],
    operation_timeout: float | None,
    connect_timeout: float | None,
    machine_limit: float | None,
    human_limit: float | None,
    is_human: bool,
) -> None:
    expected_limit = human_limit if is_human else machine_limit
    setup = AuthenticationSetup(connect_timeout, extra_login_seconds=60.0)
    setup.login.extends_deadline = is_human
    setup.authentication.reauthenticate(operation_timeout)
    setup.login.authenticate_again.assert_called_once_with(setup.authentication._run_command, operation_timeout)
    assert recorded_limits == [expected_limit]

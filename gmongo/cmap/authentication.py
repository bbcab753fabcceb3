"""The authentication of one connection: the mechanism's conversation, on that connection and within its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bson

from gmongo._documents import Document, DocumentDict
from gmongo._locals import forgets_locals
from gmongo.cmap.hello import Hello
from gmongo.cmap.pool_settings import ConnectionSettings
from gmongo.cmap.quoting import without_quotes
from gmongo.errors import OperationFailure
from gmongo.wire.limit import interrupt_after
from gmongo.wire.message import encode_op_msg, next_request_id
from gmongo.wire.reply_schema import ERROR, check

if TYPE_CHECKING:
    from gmongo.auth.authenticator import Authenticator
    from gmongo.cmap.connecting import ConnectLimit
    from gmongo.cmap.server_connection import ServerConnection


def authentication_of(connection: ServerConnection, options: ConnectionSettings) -> Authentication | None:
    """How a new connection will authenticate; None if the client does not.

    :raises ConfigurationError: the credential must not be sent to this server.
    """
    if options.authenticator is None:
        return None
    return Authentication(connection, options, options.authenticator)


class Authentication:
    """The authentication of one connection.

    :param options: of the client.
    :param authenticator: of the client.
    """

    __slots__ = ("_authenticator", "_connection", "_login", "_options")

    def __init__(self, connection: ServerConnection, options: ConnectionSettings, authenticator: Authenticator) -> None:
        self._connection = connection
        self._options = options
        self._authenticator = authenticator
        self._login = authenticator.login(connection.address[0])

    def hello_fields(self) -> DocumentDict:
        """What it adds to the hello of the handshake."""
        return self._login.hello_fields()

    def begin(self, hello: Hello, limit: ConnectLimit) -> None:
        """Authenticate after the hello. The fields of its reply that are for authentication are removed from it.

        :param limit: of the attempt to connect.
        :raises OperationFailure: the server did not accept the credential.
        """
        reply = dict(hello.reply)
        hello.reply = {field: value for field, value in reply.items() if field not in _MEANT_FOR_THIS}
        if reply.get("arbiterOnly"):
            return  # an arbiter has no users
        limit.begin(self._login.patience)
        self._login.authenticate(self._run, reply, None)
        self._connection.authentication = self

    @forgets_locals
    def again(self, seconds: float | None) -> None:
        """Authenticate once more.

        :param seconds: that it may take, beside ``connectTimeoutMS``; None is without limit.
        """
        limits = [limit for limit in (seconds, self._options.connect_timeout) if limit is not None]
        limit = min(limits) + self._login.patience if limits else None
        error = self._connection.timeout_error(self._options.connect_timeout, "connectTimeoutMS")
        with interrupt_after(limit, error):
            self._login.authenticate_again(self._run, seconds)

    def _run(self, database: str, command: Document) -> Document:
        request_id = next_request_id()
        body = bson.encode({**command, **self._options.server_api, "$db": database})
        found = self._connection.exchange(request_id, encode_op_msg(request_id, 0, body), None, bson.decode)
        check(found, ERROR)
        reply = without_quotes(found, command.get("payload"), (self._authenticator.credential.username,))
        if not reply.get("ok"):
            message = str(reply.get("errmsg") or "Authentication failed").rstrip(".")
            raise OperationFailure(f"{message} ({self._authenticator.credential})", reply.get("code"), reply)
        return reply


_MEANT_FOR_THIS = frozenset({"speculativeAuthenticate", "saslSupportedMechs"})

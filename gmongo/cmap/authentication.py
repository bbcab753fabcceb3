"""Authentication of one connection, with the credential and mechanism of the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bson

from gmongo._documents import Document, DocumentDict
from gmongo._redaction import redacted
from gmongo._traceback_scrub import clears_locals
from gmongo.cmap.hello import Hello
from gmongo.cmap.pool_settings import ConnectionSettings
from gmongo.errors import OperationFailure
from gmongo.wire.message import encode_op_msg, next_request_id
from gmongo.wire.reply_schema import ERROR, check
from gmongo.wire.timeout import interrupt_after

if TYPE_CHECKING:
    from gmongo.auth.authenticator import Authenticator
    from gmongo.cmap.connecting import ConnectTimeout
    from gmongo.cmap.server_connection import ServerConnection


class Authentication:
    """Authentication of one connection."""

    def __init__(self, connection: ServerConnection, options: ConnectionSettings, authenticator: Authenticator) -> None:
        self._connection = connection
        self._options = options
        self._authenticator = authenticator
        self._login = authenticator.login(connection.address[0])

    def hello_fields(self) -> DocumentDict:
        return self._login.hello_fields()

    def begin(self, hello: Hello, limit: ConnectTimeout) -> None:
        """Authenticate after the hello, and remove the authentication fields from the stored reply to the hello."""
        reply = dict(hello.reply)
        hello.reply = {field: value for field, value in reply.items() if field not in _AUTHENTICATION_FIELDS}
        if reply.get("arbiterOnly"):
            return  # an arbiter stores no users, so authentication is impossible
        limit.next_stage(self._login.extra_login_seconds)
        self._login.authenticate(self._run, reply, None)
        self._connection.authentication = self

    @clears_locals
    def reauthenticate(self, seconds: float | None) -> None:
        """Authenticate again within the remaining `seconds` of the operation, and within ``connectTimeoutMS``."""
        limits = [limit for limit in (seconds, self._options.connect_timeout) if limit is not None]
        limit = min(limits) + self._login.extra_login_seconds if limits else None
        error = self._connection.timeout_error(self._options.connect_timeout, "connectTimeoutMS")
        with interrupt_after(limit, error):
            self._login.authenticate_again(self._run, seconds)

    def _run(self, database: str, command: Document) -> Document:
        request_id = next_request_id()
        body = bson.encode({**command, **self._options.server_api, "$db": database})
        answer = self._connection.exchange(request_id, encode_op_msg(request_id, 0, body), None, bson.decode)
        check(answer, ERROR)
        reply = redacted(answer, command.get("payload"), (self._authenticator.credential.username,))
        if not reply.get("ok"):
            message = str(reply.get("errmsg") or "Authentication failed").rstrip(".")
            raise OperationFailure(f"{message} ({self._authenticator.credential})", reply.get("code"), reply)
        return reply


_AUTHENTICATION_FIELDS = frozenset({"speculativeAuthenticate", "saslSupportedMechs"})

"""Try to authenticate with Kerberos. The Kerberos library must report that no ticket exists."""

from __future__ import annotations

import os

import gmongo
from gmongo.errors import OperationFailure
from tests.support.server import ScriptedServer


def main() -> None:
    os.environ["KRB5CCNAME"] = "FILE:/dev/null/no_ticket"
    with (
        ScriptedServer() as server,
        gmongo.MongoClient("127.0.0.1", server.port, username="ann@EXAMPLE.COM", authMechanism="GSSAPI") as client,
    ):
        try:
            client.db.c.find_one()
        except OperationFailure as error:
            assert "GSSAPI" in str(error), error
        else:
            raise AssertionError("a ticket was found")

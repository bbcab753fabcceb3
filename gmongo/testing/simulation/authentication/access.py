"""Refuse commands of clients that have not authenticated, except the commands that need no authentication."""

from __future__ import annotations

from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.error_codes import error

_OPEN = frozenset(
    {
        "authenticate", "buildInfo", "buildinfo", "connectionStatus", "endSessions", "getnonce",
        "hello", "isMaster", "ismaster", "listCommands", "logout", "ping", "saslContinue",
        "saslStart", "whatsmyuri"
    }
)  # fmt: skip


def check_access(call: Call) -> None:
    """Check if the client may run a command."""
    if not call.cluster.users.enforced or call.name in _OPEN or call.connection.authentication.users:
        return
    raise error(13, f"Command {call.name} requires authentication")

"""The server side of PLAIN. The client sends the user name and the password in plain text."""

from __future__ import annotations

from gmongo.testing.simulation.error_codes import error
from gmongo.testing.simulation.users import User, Users


class PlainConversation:
    """A SASL conversation of PLAIN.

    :param users: the users of the deployment.
    :param database: the database of the user.
    :ivar user: the authenticated user; None until the authentication succeeds.
    :ivar done: True after the last message.
    """

    def __init__(self, users: Users, database: str) -> None:
        self._users = users
        self._database = database
        self.user: User | None = None
        self.done = False

    def step(self, payload: bytes) -> bytes:
        """Process the only message of the client, and return an empty reply.

        :raises CommandError: the user does not exist, or the password is wrong.
        """
        parts = payload.split(b"\x00")
        user = self._find(parts[1].decode()) if len(parts) == 3 else None
        if user is None or user.password is None or user.password.encode() != parts[2]:
            raise error(18, "Authentication failed.")
        self.user, self.done = user, True
        return b""

    def _find(self, name: str) -> User | None:
        # In production, a directory service such as LDAP has the users of `$external`. Here, the users of the argument
        # `users` of the deployment also count as users of `$external`.
        return self._users.find(self._database, name) or self._users.find("admin", name)

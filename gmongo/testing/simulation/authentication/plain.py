"""PLAIN: name and password in plain text."""

from __future__ import annotations

from gmongo.testing.simulation.error_codes import error
from gmongo.testing.simulation.users import User, Users


class PlainConversation:
    """One conversation.

    :param database: the database of the user.
    """

    def __init__(self, users: Users, database: str) -> None:
        self._users = users
        self._database = database
        self.user: User | None = None
        self.done = False

    def step(self, payload: bytes) -> bytes:
        """Answer the client's only message.

        :raises CommandError: there is no user with this password.
        """
        parts = payload.split(b"\x00")
        user = self._find(parts[1].decode()) if len(parts) == 3 else None
        if user is None or user.password is None or user.password.encode() != parts[2]:
            raise error(18, "Authentication failed.")
        self.user, self.done = user, True
        return b""

    def _find(self, name: str) -> User | None:
        # As with a directory, $external also has the names of `users=`.
        return self._users.find(self._database, name) or self._users.find("admin", name)

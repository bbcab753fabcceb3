"""The users of a deployment. The deployment stores roles, but each authenticated user has all privileges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.simulation.authentication.scram import Credentials, Hash

EXTERNAL = "$external"
_SCRAM: tuple[Hash, ...] = ("SCRAM-SHA-1", "SCRAM-SHA-256")


@dataclass
class User:
    """A user of a deployment.

    :param name: the name of the user.
    :param database: the database of the user, such as ``admin`` or ``$external``.
    :param password: the password; None if the user authenticates without a password, for example with a certificate.
    :param roles: the roles, which only ``usersInfo`` shows.
    :param mechanisms: the SCRAM mechanisms that the user may use.
    :param custom: the field ``customData`` of ``usersInfo``.
    """

    name: str
    database: str
    password: str | None = None
    roles: list[Any] = field(default_factory=list)
    mechanisms: tuple[str, ...] = _SCRAM
    custom: Any = None

    def __post_init__(self) -> None:
        self._credentials: dict[str, Credentials] = {}

    def credentials(self, mechanism: Hash) -> Credentials:
        """Return the SCRAM credentials. The first call for a mechanism derives the credentials from the password."""
        if mechanism not in self._credentials:
            self._credentials[mechanism] = Credentials.derive(mechanism, self.name, self.password or "")
        return self._credentials[mechanism]

    def describe(self) -> dict[str, Any]:
        """Return the document that describes the user in the reply to ``usersInfo``."""
        description = {
            "_id": f"{self.database}.{self.name}",
            "user": self.name,
            "db": self.database,
            "roles": self.roles,
            "mechanisms": ["external"] if self.database == EXTERNAL else list(self.mechanisms),
        }
        return description if self.custom is None else {**description, "customData": self.custom}


class Users:
    """All users of a deployment.

    :param passwords: the passwords by user name. A user with a password belongs to ``admin``. A user whose password is
        None, such as the subject of a certificate, belongs to ``$external``. `passwords` is None for a deployment
        without access control.
    :param oidc_tokens: the user names by OIDC token. If there are tokens, clients must authenticate.
    """

    def __init__(
        self, passwords: Mapping[str, str | None] | None, oidc_tokens: Mapping[str, str] | None = None
    ) -> None:
        self.enforced = passwords is not None or bool(oidc_tokens)
        self.oidc_tokens = dict(oidc_tokens or {})
        self._users: dict[tuple[str, str], User] = {}
        root = [{"role": "root", "db": "admin"}]
        for name, password in (passwords or {}).items():
            database = EXTERNAL if password is None else "admin"
            self._users[database, name] = User(name, database, password, list(root))

    def find(self, database: str, name: str) -> User | None:
        """Return the user with this database and name. Return None if the user does not exist."""
        return self._users.get((database, name))

    def get(self, database: str, name: str) -> User:
        """Return the user with this database and name.

        :raises CommandError: the user does not exist.
        """
        user = self.find(database, name)
        if user is None:
            raise error(11, f"User '{name}@{database}' not found")
        return user

    def add(self, user: User) -> None:
        """Add a user.

        :raises CommandError: the user exists.
        """
        if self.find(user.database, user.name):
            raise error(51003, f'User "{user.name}@{user.database}" already exists')
        self._users[user.database, user.name] = user

    def replace(self, user: User) -> None:
        """Replace the existing user that has the name and the database of `user`."""
        self._users[user.database, user.name] = user

    def remove(self, database: str, name: str) -> None:
        """Remove a user.

        :raises CommandError: the user does not exist.
        """
        self.get(database, name)
        del self._users[database, name]

    def in_database(self, database: str | None) -> Iterable[User]:
        """Return the users of a database. Return all users if `database` is None."""
        return [user for user in self._users.values() if database in (None, user.database)]

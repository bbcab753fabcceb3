"""The users of a deployment. Roles are stored, but every authenticated user has all privileges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gmongo.testing.simulation.authentication.scram import Credentials, Hash
from gmongo.testing.simulation.error_codes import error

EXTERNAL = "$external"
_SCRAM: tuple[Hash, ...] = ("SCRAM-SHA-1", "SCRAM-SHA-256")


@dataclass
class User:
    """One user.

    :param password: None for users of external mechanisms.
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
        """Return the SCRAM credentials, which are derived once."""
        if mechanism not in self._credentials:
            self._credentials[mechanism] = Credentials.derive(mechanism, self.name, self.password or "")
        return self._credentials[mechanism]

    def describe(self) -> dict[str, Any]:
        """Return the entry of usersInfo."""
        shown = {
            "_id": f"{self.database}.{self.name}",
            "user": self.name,
            "db": self.database,
            "roles": self.roles,
            "mechanisms": ["external"] if self.database == EXTERNAL else list(self.mechanisms),
        }
        return shown if self.custom is None else {**shown, "customData": self.custom}


class Users:
    """All users of a deployment.

    :param given: name -> password of users of ``admin``. A password of None makes a user of ``$external``,
        such as the subject of a certificate. None is a deployment without access control.
    :param oidc_tokens: token -> user, for MONGODB-OIDC.
    """

    def __init__(self, given: Mapping[str, str | None] | None, oidc_tokens: Mapping[str, str] | None = None) -> None:
        self.enforced = given is not None or bool(oidc_tokens)
        self.oidc_tokens = dict(oidc_tokens or {})
        self._users: dict[tuple[str, str], User] = {}
        root = [{"role": "root", "db": "admin"}]
        for name, password in (given or {}).items():
            database = EXTERNAL if password is None else "admin"
            self._users[database, name] = User(name, database, password, list(root))

    def find(self, database: str, name: str) -> User | None:
        """Return a user, or None."""
        return self._users.get((database, name))

    def get(self, database: str, name: str) -> User:
        """Return a user.

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
        """Replace a user."""
        self._users[user.database, user.name] = user

    def remove(self, database: str, name: str) -> None:
        """Remove a user.

        :raises CommandError: the user does not exist.
        """
        self.get(database, name)
        del self._users[database, name]

    def of(self, database: str | None) -> Iterable[User]:
        """Return the users of a database, or all users."""
        return [user for user in self._users.values() if database in (None, user.database)]

"""The users of a deployment. Each authenticated user has all privileges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gmongo.testing.simulation.authentication.scram import Credentials, Scram

EXTERNAL = "$external"
_ROOT_ROLE = {"role": "root", "db": "admin"}


@dataclass
class User:
    """A user of a deployment. `password` is None if the user authenticates without a password."""

    name: str
    database: str
    password: str | None = None
    roles: list[Any] = field(default_factory=list)
    mechanisms: tuple[str, ...] = ("SCRAM-SHA-1", "SCRAM-SHA-256")

    def __post_init__(self) -> None:
        self._credentials: dict[str, Credentials] = {}

    def credentials(self, mechanism: Scram) -> Credentials:
        """Return the SCRAM credentials. The first call for a mechanism derives the credentials from the password."""
        if mechanism not in self._credentials:
            self._credentials[mechanism] = Credentials.derive(mechanism, self.name, self.password or "")
        return self._credentials[mechanism]


class Users(dict[tuple[str, str], User]):
    """All users of a deployment, by database and name.

    :param passwords: the passwords by user name. A user with a password belongs to ``admin``. A user
        whose password is None, such as the subject of a certificate, belongs to ``$external``.
        If `passwords` is not None, clients must authenticate.
    :param oidc_tokens: the user names by OIDC token. If `oidc_tokens` is not empty, clients must authenticate.
    """

    def __init__(
        self, passwords: Mapping[str, str | None] | None, oidc_tokens: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.requires_authentication = passwords is not None or bool(oidc_tokens)
        self.oidc_tokens = dict(oidc_tokens or {})
        for name, password in (passwords or {}).items():
            database = EXTERNAL if password is None else "admin"
            self[database, name] = User(name, database, password, [_ROOT_ROLE])

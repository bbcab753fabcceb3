"""The commands that create and remove users."""

from __future__ import annotations

from typing import Any

from gmongo.testing.command import error
from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.users import EXTERNAL, User

_ROLES = frozenset({
    "__system", "backup", "clusterAdmin", "clusterManager", "clusterMonitor", "dbAdmin", "dbAdminAnyDatabase",
    "dbOwner", "enableSharding", "hostManager", "read", "readAnyDatabase", "readWrite", "readWriteAnyDatabase",
    "restore", "root", "userAdmin", "userAdminAnyDatabase"
})  # fmt: skip


def _create_user(call: Call) -> dict[str, Any]:
    call.cluster.topology.admit(call)
    body, database, users = call.body, call.request.database, call.cluster.users
    if database != EXTERNAL and not body.get("pwd"):
        raise error(2, "Must provide a 'pwd' field for all user documents, except those with '$external' as the source")
    user = User(body[call.name], database, body.get("pwd"), _parse_roles(call))
    if "mechanisms" in body:
        user.mechanisms = tuple(body["mechanisms"])
    if (database, user.name) in users:
        raise error(51003, f'User "{user.name}@{database}" already exists')
    users[database, user.name] = user
    return {}


def _drop_user(call: Call) -> dict[str, Any]:
    call.cluster.topology.admit(call)
    database, name = call.request.database, call.body[call.name]
    if call.cluster.users.pop((database, name), None) is None:
        raise error(11, f"User '{name}@{database}' not found")
    return {}


def _drop_all_users(call: Call) -> dict[str, Any]:
    call.cluster.topology.admit(call)
    user_keys = [key for key in call.cluster.users if key[0] == call.request.database]
    for key in user_keys:
        del call.cluster.users[key]
    return {"n": len(user_keys)}


def _parse_roles(call: Call) -> list[Any]:
    database = call.request.database
    for role in call.body["roles"]:
        if isinstance(role, dict) and not (
            set(role) == {"role", "db"} and all(type(part) is str for part in role.values())
        ):
            raise error(2, f"RoleName must have the fields 'role' and 'db', and not {role!r:.60}")
        name = role["role"] if isinstance(role, dict) else role
        if name not in _ROLES:
            raise error(31, f"Could not find role: {name}@{database}")
    return [{"role": role, "db": database} if isinstance(role, str) else role for role in call.body["roles"]]


COMMANDS = {"createUser": _create_user, "dropAllUsersFromDatabase": _drop_all_users, "dropUser": _drop_user}

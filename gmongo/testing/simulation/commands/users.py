"""The commands that create, change, remove and show users."""

from __future__ import annotations

from collections.abc import Mapping
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
    body, database = call.body, call.request.database
    if database != EXTERNAL and not body.get("pwd"):
        raise error(2, "Must provide a 'pwd' field for all user documents, except those with '$external' as the source")
    user = User(body[call.name], database, body.get("pwd"), _roles(call), custom=body.get("customData"))
    if "mechanisms" in body:
        user.mechanisms = tuple(body["mechanisms"])
    call.cluster.users.add(user)
    return {}


def _update_user(call: Call) -> dict[str, Any]:
    call.cluster.topology.admit(call)
    body, users = call.body, call.cluster.users
    if all(body.get(name) is None for name in ("pwd", "roles", "mechanisms", "customData")):
        raise error(2, "Must specify at least one field to update in updateUser")
    old = users.get(call.request.database, body[call.name])
    users.replace(
        User(
            old.name,
            old.database,
            body.get("pwd") or old.password,
            _roles(call) if "roles" in body else old.roles,
            tuple(body.get("mechanisms", old.mechanisms)),
            body.get("customData", old.custom),
        )
    )
    return {}


def _drop_user(call: Call) -> dict[str, Any]:
    call.cluster.topology.admit(call)
    call.cluster.users.remove(call.request.database, call.body[call.name])
    return {}


def _drop_all_users(call: Call) -> dict[str, Any]:
    call.cluster.topology.admit(call)
    users = list(call.cluster.users.in_database(call.request.database))
    for user in users:
        call.cluster.users.remove(user.database, user.name)
    return {"n": len(users)}


def _users_info(call: Call) -> dict[str, Any]:
    selector, database = call.body[call.name], call.request.database
    if selector == 1:
        return {"users": [user.describe() for user in call.cluster.users.in_database(database)]}
    if isinstance(selector, Mapping) and selector.get("forAllDBs"):
        return {"users": [user.describe() for user in call.cluster.users.in_database(None)]}
    users = (_find_user(call, each) for each in (selector if isinstance(selector, list) else [selector]))
    return {"users": [user.describe() for user in users if user is not None]}


def _find_user(call: Call, selector: Any) -> User | None:
    if isinstance(selector, Mapping):
        for name in ("user", "db"):
            if list(selector) not in (["user", "db"], ["db", "user"]) or not isinstance(selector[name], str):
                raise error(2, f"UserName must have the fields 'user' and 'db', and not {selector!r:.60}")
        return call.cluster.users.find(selector["db"], selector["user"])
    return call.cluster.users.find(call.request.database, str(selector))


def _roles(call: Call) -> list[Any]:
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


COMMANDS = {
    "createUser": _create_user,
    "dropAllUsersFromDatabase": _drop_all_users,
    "dropUser": _drop_user,
    "updateUser": _update_user,
    "usersInfo": _users_info,
}

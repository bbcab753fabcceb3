"""The functions that execute commands on the server, by command name.

All kinds of deployments support the commands in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.cluster import Cluster
from gmongo.testing.simulation.commands import administration, diagnostics, operations, users
from gmongo.testing.simulation.hello import hello
from gmongo.testing.store.commands import COMMANDS as STORED


def command_names(cluster: Cluster) -> set[str]:
    """Return the names of all commands that a deployment supports."""
    return {*COMMANDS, *cluster.topology.commands, *STORED}


def _list_commands(call: Call) -> dict[str, Any]:
    return {"commands": {name: {"help": ""} for name in sorted(command_names(call.cluster))}}


COMMANDS: Mapping[str, Callable[[Call], dict[str, Any]]] = {
    "hello": hello, "listCommands": _list_commands, "isMaster": hello, "ismaster": hello,
    **administration.COMMANDS, **diagnostics.COMMANDS, **operations.COMMANDS, **users.COMMANDS
}  # fmt: skip

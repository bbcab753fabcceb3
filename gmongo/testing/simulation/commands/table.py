"""All commands of :mod:`gmongo.testing.simulation.commands` that every kind of deployment has, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.commands import authentication, diagnostics, faults, parameters, users
from gmongo.testing.simulation.hello import hello

COMMANDS: Mapping[str, Callable[[Call], dict[str, Any]]] = {
    "hello": hello,
    "isMaster": hello,
    "ismaster": hello,
    **authentication.COMMANDS,
    **diagnostics.COMMANDS,
    **faults.COMMANDS,
    **parameters.COMMANDS,
    **users.COMMANDS,
}

"""Databases for tests, examples and first steps, without a MongoDB installation.

:class:`Deployment` simulates whole MongoDB deployments (replica sets, sharded clusters, load balancers) with all that
may go wrong with them. :class:`DeploymentProcess` and :class:`DeploymentThread` do so in a process or a native thread
of their own, for programs that do not run on gevent. :class:`VirtualTime` lets time pass in no time.
:class:`EmbeddedDatabase` runs a small, real database server over a SQLite file; :func:`database_uri` uses it where
``MONGODB_URI`` names no other. They need ``pip install 'gmongo[testing]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmongo.testing.embedded import (
    URI_VARIABLE,
    EmbeddedDatabase,
    EmbeddedDatabaseError,
    database_uri,
)

if TYPE_CHECKING:
    from gmongo.testing.command import CommandError
    from gmongo.testing.deployment import Deployment
    from gmongo.testing.deployment_process import DeploymentProcess
    from gmongo.testing.deployment_thread import DeploymentThread
    from gmongo.testing.simulation.certificates import certificates
    from gmongo.testing.virtual_time import VirtualTime

__all__ = [
    "URI_VARIABLE",
    "CommandError",
    "Deployment",
    "DeploymentProcess",
    "DeploymentThread",
    "EmbeddedDatabase",
    "EmbeddedDatabaseError",
    "VirtualTime",
    "certificates",
    "database_uri",
]

# Loaded when they are asked for: the embedded database does without what these need.
_LATE = {
    "CommandError": "gmongo.testing.command",
    "Deployment": "gmongo.testing.deployment",
    "DeploymentProcess": "gmongo.testing.deployment_process",
    "DeploymentThread": "gmongo.testing.deployment_thread",
    "VirtualTime": "gmongo.testing.virtual_time",
    "certificates": "gmongo.testing.simulation.certificates",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)

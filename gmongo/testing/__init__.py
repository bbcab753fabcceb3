"""Database servers for tests, for examples, and for the first steps with gmongo.

- :class:`EmbeddedDatabase` and :class:`EmbeddedReplicaSet` run real database servers, such as
  MongoDB's `mongod` (``pip install 'gmongo[mongod]'``), in child processes. :func:`database_uri`
  starts an embedded database unless the environment variable ``MONGODB_URI`` is set.
- :class:`Deployment` simulates MongoDB deployments (replica sets, sharded clusters, load balancers)
  and their failures. For programs that do not run on gevent, :class:`DeploymentProcess` and
  :class:`DeploymentThread` run the simulation in a separate process or in a native thread.
  :class:`VirtualTime` replaces the real clock by a virtual clock. The simulation and the virtual
  clock need ``pip install 'gmongo[testing]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gmongo.testing.command import CommandError
    from gmongo.testing.deployment import Deployment
    from gmongo.testing.deployment_process import DeploymentProcess
    from gmongo.testing.deployment_thread import DeploymentThread
    from gmongo.testing.embedded import URI_VARIABLE, EmbeddedDatabase, database_uri
    from gmongo.testing.embedded_replica_set import EmbeddedReplicaSet
    from gmongo.testing.mongod.program import EmbeddedDatabaseError
    from gmongo.testing.simulation.certificates import certificates
    from gmongo.testing.virtual_time import VirtualTime

__all__ = [
    "URI_VARIABLE", "CommandError", "Deployment", "DeploymentProcess", "DeploymentThread",
    "EmbeddedDatabase", "EmbeddedDatabaseError", "EmbeddedReplicaSet", "VirtualTime",
    "certificates", "database_uri"
]  # fmt: skip

# The package imports a module only when a program reads a name of the module. Otherwise every
# pytest run would import all modules, because pytest loads the plugin of this package.
_MODULE_NAMES = {
    "CommandError": "gmongo.testing.command",
    "Deployment": "gmongo.testing.deployment",
    "DeploymentProcess": "gmongo.testing.deployment_process",
    "DeploymentThread": "gmongo.testing.deployment_thread",
    "EmbeddedDatabase": "gmongo.testing.embedded",
    "EmbeddedDatabaseError": "gmongo.testing.mongod.program",
    "EmbeddedReplicaSet": "gmongo.testing.embedded_replica_set",
    "URI_VARIABLE": "gmongo.testing.embedded",
    "VirtualTime": "gmongo.testing.virtual_time",
    "certificates": "gmongo.testing.simulation.certificates",
    "database_uri": "gmongo.testing.embedded",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _MODULE_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_NAMES[name]), name)

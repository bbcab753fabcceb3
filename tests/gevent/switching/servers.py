"""Real servers for scenarios, and a function that counts the open cursors, transactions and
connections of a deployment.
"""

from __future__ import annotations

import gc
from typing import Any
from weakref import WeakSet

import gevent

from gmongo import MongoClient
from gmongo.testing import Deployment


class RealDeployment:
    """A real server that scenarios use like a simulated deployment."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.observer: MongoClient[Any] = MongoClient(uri, serverMonitoringMode="poll", heartbeatFrequencyMS=3_600_000)
        self.version = tuple(self.observer.server_info()["versionArray"][:2])
        # The checks ignore the driver greenlets of the observer, which outlives each run.
        self.greenlets = WeakSet(each for each in gc.get_objects() if isinstance(each, gevent.Greenlet))

    def set_fail_point(self, name: str, mode: Any, data: Any = None, *, member: Any = None) -> None:
        more = {} if data is None else {"data": data}
        self.observer.admin.command("configureFailPoint", name, mode=mode, **more)


def count_open_resources(deployment: Deployment | RealDeployment) -> dict[str, int]:
    """Return the numbers of cursors, transactions and connections that are open on the servers."""
    if isinstance(deployment, RealDeployment):
        status = deployment.observer.admin.command("serverStatus")
        return {
            "cursors": status["metrics"]["cursor"]["open"]["total"],
            "transactions": status["transactions"]["currentOpen"],
            "connections": _count_client_connections(deployment.observer),
        }
    state = deployment._cluster.store._state
    transactions = [session.transaction for session in state.sessions]
    return {
        "cursors": len(state.cursors._open),
        "transactions": sum(each is not None and each.status == "in progress" for each in transactions),
        "connections": sum(len(member.connections) for member in deployment.members),
    }


def _count_client_connections(observer: MongoClient[Any]) -> int:
    """Return the number of connections, without the connections that the server opens to itself.

    To vote in an index build, the server opens a connection to itself, which stays open for minutes.
    """
    operations = observer.admin.command("currentOp", **{"$all": True})["inprog"]
    connections = [each for each in operations if "connectionId" in each]
    names = [each.get("clientMetadata", {}).get("driver", {}).get("name", "") for each in connections]
    return sum(not name.startswith("NetworkInterfaceTL") for name in names)

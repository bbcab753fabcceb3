"""What an operation is measured with beside the plain case: other options of the client, another kind of server."""

from __future__ import annotations

import importlib
import logging
from typing import Any, Literal, NamedTuple

ServerKind = Literal["standalone", "replica set", "tls"]
#: The name that the canned replica set has.
REPLICA_SET = "bench"


class Circumstance(NamedTuple):
    """What is different. The floor has nothing of that kind.

    :param options: of the client, as in a URI.
    :param server: which canned server is asked.
    :param switch: what else is switched on in the driver.
    :param workers: how many processes do the same at once, on one processor.
    """

    options: dict[str, str] = {}
    server: ServerKind = "standalone"
    switch: Literal["listener", "debug", "stable API"] | None = None
    workers: int = 1


CIRCUMSTANCES = {
    "listener": Circumstance(switch="listener"),
    "debug": Circumstance(switch="debug"),
    "stable_api": Circumstance(switch="stable API"),
    "timeout": Circumstance({"timeoutMS": "10000"}),
    "workers": Circumstance(workers=4),
    "10_connections": Circumstance({"maxPoolSize": "10"}),
    "tls": Circumstance({"tls": "true", "tlsAllowInvalidCertificates": "true"}, "tls"),
    "replica_set": Circumstance({"replicaSet": REPLICA_SET}, "replica set"),
    "secondary": Circumstance({"replicaSet": REPLICA_SET, "readPreference": "secondaryPreferred"}, "replica set"),
}


def settings_of(driver: str, circumstance: Circumstance, *, listener: bool = False) -> dict[str, Any]:
    """The keyword arguments of a driver's client.

    :param driver: the name of the package, which has PyMongo's modules.
    :param listener: register a command listener in any case.
    """
    settings: dict[str, Any] = {}
    if listener or circumstance.switch == "listener":
        settings["event_listeners"] = [silent_listener(driver)]
    if circumstance.switch == "stable API":
        settings["server_api"] = importlib.import_module(f"{driver}.server_api").ServerApi("1")
    if circumstance.switch == "debug":
        log_silently(driver)
    return settings


def log_silently(driver: str) -> None:
    """Have a driver log everything, to a handler that does nothing with it.

    :param driver: the name of the package, and of its logger.
    """
    logger = logging.getLogger(driver)
    logger.setLevel(logging.DEBUG)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def silent_listener(driver: str) -> Any:
    """A command listener of a driver that does nothing with what it is told.

    :param driver: the name of the package, which has PyMongo's ``monitoring`` module.
    """
    base: Any = importlib.import_module(f"{driver}.monitoring").CommandListener

    def ignore(_self: Any, _event: Any) -> None:
        pass

    return type("SilentListener", (base,), {"started": ignore, "succeeded": ignore, "failed": ignore})()

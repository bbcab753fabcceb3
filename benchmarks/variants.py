"""Variants of a measurement: client options, driver features and server kinds that are not the default."""

from __future__ import annotations

import importlib
import logging
from typing import Any, Literal, NamedTuple

ServerKind = Literal["standalone", "replica set", "tls"]
#: The name of the canned replica set.
REPLICA_SET_NAME = "bench"


class Variant(NamedTuple):
    """Differences between a variant and the default measurement. The contender ``floor`` has none.

    :param options: the client options, as in a URI.
    :param server: the kind of the canned server.
    :param feature: a feature of the driver that a URI cannot enable.
    """

    options: dict[str, str] = {}
    server: ServerKind = "standalone"
    feature: Literal["listener", "debug", "stable API"] | None = None


VARIANTS = {
    "listener": Variant(feature="listener"),
    "debug": Variant(feature="debug"),
    "stable_api": Variant(feature="stable API"),
    "timeout": Variant({"timeoutMS": "10000"}),
    "10_connections": Variant({"maxPoolSize": "10"}),
    "tls": Variant({"tls": "true", "tlsAllowInvalidCertificates": "true"}, "tls"),
    "replica_set": Variant({"replicaSet": REPLICA_SET_NAME}, "replica set"),
    "secondary": Variant({"replicaSet": REPLICA_SET_NAME, "readPreference": "secondaryPreferred"}, "replica set"),
}


def settings_of(driver: str, variant: Variant) -> dict[str, Any]:
    """Prepare a driver for a variant, and return further keyword arguments of ``MongoClient``.

    :param driver: the name of a package whose modules have the names of PyMongo modules.
    """
    settings: dict[str, Any] = {}
    if variant.feature == "listener":
        settings["event_listeners"] = [silent_listener(driver)]
    if variant.feature == "stable API":
        settings["server_api"] = importlib.import_module(f"{driver}.server_api").ServerApi("1")
    if variant.feature == "debug":
        log_silently(driver)
    return settings


def log_silently(driver: str) -> None:
    """Set the logger of a driver to ``DEBUG``, and add a handler that ignores all messages.

    :param driver: the name of the package and of its logger.
    """
    logger = logging.getLogger(driver)
    logger.setLevel(logging.DEBUG)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def silent_listener(driver: str) -> Any:
    """Return a command listener that ignores its events.

    :param driver: the name of a package with a module ``monitoring`` as in PyMongo.
    """
    base: Any = importlib.import_module(f"{driver}.monitoring").CommandListener

    def ignore(_self: Any, _event: Any) -> None:
        pass

    return type("SilentListener", (base,), {"started": ignore, "succeeded": ignore, "failed": ignore})()

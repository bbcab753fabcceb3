"""The description from which a separate thread or process creates a deployment."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from gmongo.testing.deployment import Deployment
from gmongo.testing.simulation.certificates import certificates, use_authority

_KINDS = frozenset({"standalone", "replica_set", "sharded", "load_balanced"})
_LIST_SETTINGS = frozenset({"compressors", "write_concern_modes", "tags", "priorities"})


class Plan:
    """The name of a method that creates a `Deployment`, such as ``replica_set``, and the arguments of the method."""

    def __init__(self, kind: str, settings: Mapping[str, Any]) -> None:
        self.kind = kind
        self.settings = {name: list(value) if name in _LIST_SETTINGS else value for name, value in settings.items()}
        self.create_deployment()

    def create_deployment(self) -> Deployment:
        deployment: Deployment = getattr(Deployment, self.kind)(**self.settings)
        return deployment

    def to_message(self) -> dict[str, Any]:
        """Return the plan as a message, with the certificate authority if `tls` is True."""
        tls = self.settings.get("tls", False)
        if isinstance(tls, ssl.SSLContext):
            raise ValueError("tls is an SSLContext, which cannot be sent to another process: use True or paths")
        settings = dict(self.settings)
        if isinstance(tls, Mapping):
            settings["tls"] = {name: str(path) for name, path in tls.items()}
        authority = certificates().authority if tls is True else None
        return {"kind": self.kind, "settings": settings, "authority": authority}


def create_from_message(message: Mapping[str, Any]) -> Deployment:
    """Return the deployment that a message of :meth:`Plan.to_message` describes. The deployment is not started."""
    if message["kind"] not in _KINDS:
        raise ValueError(f"{message['kind']!r} is not one of {sorted(_KINDS)}")
    if message["authority"] is not None:
        use_authority(*message["authority"])
    return Plan(message["kind"], message["settings"]).create_deployment()

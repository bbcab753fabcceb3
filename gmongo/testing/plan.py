"""What a deployment that is started elsewhere is to be."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from gmongo.testing.deployment import Deployment
from gmongo.testing.simulation.certificates import adopt, certificates

_KINDS = frozenset({"standalone", "replica_set", "sharded", "load_balanced"})
_LISTS = frozenset({"compressors", "write_concern_modes", "tags", "priorities"})


class Plan:
    """A kind of deployment, and its settings.

    :param kind: the method of :class:`~gmongo.testing.Deployment` that makes it.
    :param settings: the keyword arguments of the method.
    :raises ValueError: one of them is not what it must be.
    """

    def __init__(self, kind: str, settings: Mapping[str, Any]) -> None:
        self.kind = kind
        self.settings = {name: list(value) if name in _LISTS else value for name, value in settings.items()}
        self.make()

    def make(self) -> Deployment:
        """A deployment of this kind, not started."""
        made: Deployment = getattr(Deployment, self.kind)(**self.settings)
        return made

    def to_message(self) -> dict[str, Any]:
        """The plan for another process, with the authority of this one's certificates if it needs that.

        :raises ValueError: there is something in it that stays in this process.
        """
        tls = self.settings.get("tls", False)
        if isinstance(tls, ssl.SSLContext):
            raise ValueError("tls is an SSLContext, which stays in this process; another takes True, or paths")
        settings = dict(self.settings)
        if isinstance(tls, Mapping):
            settings["tls"] = {name: str(path) for name, path in tls.items()}
        authority = certificates().authority if tls is True else None
        return {"kind": self.kind, "settings": settings, "authority": authority}


def deployment_of(message: Mapping[str, Any]) -> Deployment:
    """The deployment that a plan of another process describes, not started."""
    if message["kind"] not in _KINDS:
        raise ValueError(f"{message['kind']!r} is not one of {sorted(_KINDS)}")
    if message["authority"] is not None:
        adopt(*message["authority"])
    return Plan(message["kind"], message["settings"]).make()

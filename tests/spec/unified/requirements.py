"""Selection of simulated deployments that satisfy ``runOnRequirements``."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from tests.spec.unified.schema import version

TOPOLOGIES = ("single", "replicaset", "sharded", "load-balanced")
VERSIONS = ("8.0", "7.0", "6.0", "5.0", "4.4", "4.2", "8.2")
"""Server versions by preference. Version 8.2 is used only if no other version satisfies the requirements."""

MECHANISMS = ("SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-OIDC")
"""Authentication mechanisms of deployments with users."""

# Parameters of all deployments. A deployment gets a parameter in `_SETTABLE` if a case requires the parameter.
_PARAMETERS = {"enableTestCommands": True, "requireApiVersion": False}
_SETTABLE = frozenset({"acceptApiVersion2"})

try:
    from pymongocrypt.binding import libmongocrypt_version
except ImportError:
    LIBMONGOCRYPT = None
else:
    LIBMONGOCRYPT = version(libmongocrypt_version())
"""Version of libmongocrypt, or None without the library."""

# All shards of the supported versions are replica sets.
_SYNONYMS = {"sharded-replicaset": "sharded"}


@dataclass(frozen=True)
class Setting:
    """Configuration of a deployment.

    :param topology: One of :data:`TOPOLOGIES`.
    :param version: Version of the servers.
    :param auth: True if the deployment requires authentication.
    :param parameters: Additional server parameters.
    """

    topology: str
    version: str = VERSIONS[0]
    auth: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()


def settings(*levels: Sequence[Mapping[str, Any]] | None) -> list[Setting]:
    """Return the preferred setting of each topology that can satisfy the requirements.

    :param levels: Requirements of the file and of the case. A deployment must satisfy one element for the file and one
    element for the case.
    """
    return _settings(json.dumps(levels))  # the cache needs a hashable key


@cache
def _settings(levels: str) -> list[Setting]:
    preferred = [next(_of_topology(topology, json.loads(levels)), None) for topology in TOPOLOGIES]
    return [setting for setting in preferred if setting is not None]


def _of_topology(topology: str, levels: Sequence[Sequence[Mapping[str, Any]] | None]) -> Iterator[Setting]:
    for auth, number in product((False, True), VERSIONS):
        if topology == "load-balanced" and version(number) < (5, 0, 0):
            continue
        chosen = [_first(level, topology, number, auth) for level in levels if level is not None]
        if None not in chosen:
            items = (item for each in chosen if each for item in each.get("serverParameters", {}).items())
            parameters = tuple(sorted(item for item in dict(items).items() if item[0] in _SETTABLE))
            yield Setting(topology, number, auth, parameters)


def _first(level: Sequence[Mapping[str, Any]], topology: str, number: str, auth: bool) -> Mapping[str, Any] | None:
    offer = DeploymentProperties(topology, number, auth, MECHANISMS if auth else (), _parameters_can_be)
    return next((each for each in level if not unmet(each, offer)), None)


@dataclass(frozen=True)
class DeploymentProperties:
    """Properties of a deployment for the comparison with requirements.

    :param topology: One of :data:`TOPOLOGIES`.
    :param version: Version of the servers.
    :param auth: True if the deployment requires authentication.
    :param mechanisms: Supported authentication mechanisms.
    :param has_parameters: Function that returns True if the server parameters have the given values.
    """

    topology: str
    version: str
    auth: bool
    mechanisms: Collection[str]
    has_parameters: Callable[[Mapping[str, Any]], bool]


def unmet(requirement: Mapping[str, Any], offer: DeploymentProperties) -> list[str]:
    """Return the unsatisfied requirements of an element of ``runOnRequirements``."""
    checks: Mapping[str, Callable[[Any], bool]] = {
        "minServerVersion": lambda least: version(offer.version) >= version(least),
        "maxServerVersion": lambda most: version(offer.version) <= version(most),
        "topologies": lambda names: offer.topology in [_SYNONYMS.get(name, name) for name in names],
        "serverless": lambda use: use != "require",
        "serverParameters": offer.has_parameters,
        "auth": lambda required: required == offer.auth,
        "authMechanism": lambda name: name.upper() in offer.mechanisms,
        "csfle": _encryption_can_be,
    }
    return [f"{name} {value}" for name, value in requirement.items() if not checks[name](value)]


def _encryption_can_be(required: bool | Mapping[str, Any]) -> bool:
    if isinstance(required, bool):
        return required is (LIBMONGOCRYPT is not None)
    return LIBMONGOCRYPT is not None and version(required["minLibmongocryptVersion"]) <= LIBMONGOCRYPT


def _parameters_can_be(required: Mapping[str, Any]) -> bool:
    return all(name in _SETTABLE or _PARAMETERS.get(name) == value for name, value in required.items())

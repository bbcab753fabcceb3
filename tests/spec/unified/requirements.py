"""Select simulated deployments that satisfy ``runOnRequirements`` of a file and a case."""

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
"""Server versions in the order of preference."""

MECHANISMS = ("SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-OIDC")
"""Authentication mechanisms that deployments with users support."""

# Server parameters that all deployments have. A deployment sets a parameter in
# `_SETTABLE_PARAMETERS` only if a case requires the parameter.
_FIXED_PARAMETERS = {"enableTestCommands": True, "requireApiVersion": False}
_SETTABLE_PARAMETERS = frozenset({"acceptApiVersion2"})

try:
    from pymongocrypt.binding import libmongocrypt_version
except ImportError:
    LIBMONGOCRYPT_VERSION = None
else:
    LIBMONGOCRYPT_VERSION = version(libmongocrypt_version())
"""Version of libmongocrypt, or None if libmongocrypt is not installed."""

# Both names mean the same topology: in all supported server versions, each shard is a replica set.
_TOPOLOGY_SYNONYMS = {"sharded-replicaset": "sharded"}


@dataclass(frozen=True)
class Setting:
    """Configuration of a deployment."""

    topology: str
    version: str = VERSIONS[0]
    auth: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()


def settings(*levels: Sequence[Mapping[str, Any]] | None) -> list[Setting]:
    """Return the preferred setting for each topology that can satisfy all ``runOnRequirements``."""
    # The cache needs a hashable argument.
    return _settings(json.dumps(levels))


@cache
def _settings(levels_json: str) -> list[Setting]:
    preferred = [next(_settings_of_topology(topology, json.loads(levels_json)), None) for topology in TOPOLOGIES]
    return [setting for setting in preferred if setting is not None]


def _settings_of_topology(topology: str, levels: Sequence[Sequence[Mapping[str, Any]] | None]) -> Iterator[Setting]:
    for auth, server_version in product((False, True), VERSIONS):
        if topology == "load-balanced" and version(server_version) < (5, 0, 0):
            continue
        chosen = [_satisfied_requirement(each, topology, server_version, auth) for each in levels if each is not None]
        if None not in chosen:
            items = (item for each in chosen if each for item in each.get("serverParameters", {}).items())
            parameters = tuple(sorted(item for item in dict(items).items() if item[0] in _SETTABLE_PARAMETERS))
            yield Setting(topology, server_version, auth, parameters)


def _satisfied_requirement(
    alternatives: Sequence[Mapping[str, Any]], topology: str, server_version: str, auth: bool
) -> Mapping[str, Any] | None:
    properties = DeploymentProperties(topology, server_version, auth, MECHANISMS if auth else (), _can_have_parameters)
    return next((each for each in alternatives if not unmet_requirements(each, properties)), None)


@dataclass(frozen=True)
class DeploymentProperties:
    """Properties that ``runOnRequirements`` can require of a deployment."""

    topology: str
    version: str
    auth: bool
    mechanisms: Collection[str]
    has_parameters: Callable[[Mapping[str, Any]], bool]


def unmet_requirements(requirement: Mapping[str, Any], properties: DeploymentProperties) -> list[str]:
    """Return the unsatisfied fields of a requirement, each as a text with its name and its value."""
    checks: Mapping[str, Callable[[Any], bool]] = {
        "minServerVersion": lambda least: version(properties.version) >= version(least),
        "maxServerVersion": lambda most: version(properties.version) <= version(most),
        "topologies": lambda names: properties.topology in [_TOPOLOGY_SYNONYMS.get(name, name) for name in names],
        "serverless": lambda value: value != "require",
        "serverParameters": properties.has_parameters,
        "auth": lambda required: required == properties.auth,
        "authMechanism": lambda name: name.upper() in properties.mechanisms,
        "csfle": _can_have_encryption,
    }
    return [f"{name} {value}" for name, value in requirement.items() if not checks[name](value)]


def _can_have_encryption(required: bool | Mapping[str, Any]) -> bool:
    if isinstance(required, bool):
        return required is (LIBMONGOCRYPT_VERSION is not None)
    return LIBMONGOCRYPT_VERSION is not None and version(required["minLibmongocryptVersion"]) <= LIBMONGOCRYPT_VERSION


def _can_have_parameters(required: Mapping[str, Any]) -> bool:
    return all(name in _SETTABLE_PARAMETERS or _FIXED_PARAMETERS.get(name) == value for name, value in required.items())

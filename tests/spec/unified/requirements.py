"""On which deployments a case can run: ``runOnRequirements`` against what the simulation offers."""

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
"""The first that satisfies the requirements is taken; 8.2 only where nothing else does."""

MECHANISMS = ("SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-OIDC")
"""What deployments with users take."""

# What the deployments have without being asked; the others in `_SETTABLE` they get where a case asks for them.
_PARAMETERS = {"enableTestCommands": True, "requireApiVersion": False}
_SETTABLE = frozenset({"acceptApiVersion2"})

try:
    from pymongocrypt.binding import libmongocrypt_version
except ImportError:
    LIBMONGOCRYPT = None
else:
    LIBMONGOCRYPT = version(libmongocrypt_version())
"""The version of the library; None if it is not installed."""

# A sharded cluster of this age has replica sets for shards.
_SYNONYMS = {"sharded-replicaset": "sharded"}


@dataclass(frozen=True)
class Setting:
    """A kind of deployment.

    :param topology: one of :data:`TOPOLOGIES`.
    :param version: of the servers.
    :param auth: whether users must log in.
    :param parameters: server parameters that are set, besides those that always are.
    """

    topology: str
    version: str = VERSIONS[0]
    auth: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()


def settings(*levels: Sequence[Mapping[str, Any]] | None) -> list[Setting]:
    """For every topology the best setting that satisfies the requirements, if one does.

    :param levels: the requirements of the file and of the case; each level must be satisfied in one of its elements.
    """
    return _settings(json.dumps(levels))  # thousands of cases have the same few


@cache
def _settings(levels: str) -> list[Setting]:
    found = [next(_of_topology(topology, json.loads(levels)), None) for topology in TOPOLOGIES]
    return [setting for setting in found if setting is not None]


def _of_topology(topology: str, levels: Sequence[Sequence[Mapping[str, Any]] | None]) -> Iterator[Setting]:
    for auth, number in product((False, True), VERSIONS):
        if topology == "load-balanced" and version(number) < (5, 0, 0):
            continue
        chosen = [_first(level, topology, number, auth) for level in levels if level is not None]
        if None not in chosen:
            wanted = {name: value for one in chosen if one for name, value in one.get("serverParameters", {}).items()}
            parameters = tuple(sorted(item for item in wanted.items() if item[0] in _SETTABLE))
            yield Setting(topology, number, auth, parameters)


def _first(level: Sequence[Mapping[str, Any]], topology: str, number: str, auth: bool) -> Mapping[str, Any] | None:
    offer = Offer(topology, number, auth, MECHANISMS if auth else (), _parameters_can_be)
    return next((each for each in level if not unmet(each, offer)), None)


@dataclass(frozen=True)
class Offer:
    """What a deployment has that requirements ask for.

    :param topology: one of :data:`TOPOLOGIES`.
    :param version: of the servers.
    :param auth: whether users must log in.
    :param mechanisms: by which they may.
    :param has_parameters: whether the servers' parameters have these values.
    """

    topology: str
    version: str
    auth: bool
    mechanisms: Collection[str]
    has_parameters: Callable[[Mapping[str, Any]], bool]


def unmet(requirement: Mapping[str, Any], offer: Offer) -> list[str]:
    """What a deployment lacks of an element of ``runOnRequirements``, each with what is asked for."""
    checks: Mapping[str, Callable[[Any], bool]] = {
        "minServerVersion": lambda least: version(offer.version) >= version(least),
        "maxServerVersion": lambda most: version(offer.version) <= version(most),
        "topologies": lambda names: offer.topology in [_SYNONYMS.get(name, name) for name in names],
        "serverless": lambda use: use != "require",
        "serverParameters": offer.has_parameters,
        "auth": lambda wanted: wanted == offer.auth,
        "authMechanism": lambda name: name.upper() in offer.mechanisms,
        "csfle": _encryption_can_be,
    }
    return [f"{name} {value}" for name, value in requirement.items() if not checks[name](value)]


def _encryption_can_be(wanted: bool | Mapping[str, Any]) -> bool:
    if isinstance(wanted, bool):
        return wanted is (LIBMONGOCRYPT is not None)
    return LIBMONGOCRYPT is not None and version(wanted["minLibmongocryptVersion"]) <= LIBMONGOCRYPT


def _parameters_can_be(wanted: Mapping[str, Any]) -> bool:
    return all(name in _SETTABLE or _PARAMETERS.get(name) == value for name, value in wanted.items())

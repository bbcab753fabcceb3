"""The server parameters that the simulation supports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.command import NO_CODE, error

MECHANISMS = ["SCRAM-SHA-1", "SCRAM-SHA-256"]
DEFAULTS: dict[str, Any] = {
    "acceptApiVersion2": False, "authenticationMechanisms": MECHANISMS,
    "diagnosticDataCollectionEnabled": False, "enableTestCommands": True,
    "ingressConnectionEstablishmentBurstCapacitySecs": 1.0,
    "ingressConnectionEstablishmentMaxQueueDepth": 0,
    "ingressConnectionEstablishmentRateLimiterEnabled": False,
    "ingressConnectionEstablishmentRatePerSec": float("inf"),
    "ingressRequestAdmissionBurstCapacitySecs": 1.0,
    "ingressRequestAdmissionRatePerSec": float("inf"), "ingressRequestRateLimiterEnabled": False,
    "localLogicalSessionTimeoutMinutes": 30, "logLevel": 0, "notablescan": False, "quiet": False,
    "requireApiVersion": False, "transactionLifetimeLimitSeconds": 60, "ttlMonitorEnabled": True,
    "ttlMonitorSleepSecs": 60
}  # fmt: skip
# The types that a new value may have, by the type of the default value.
_ACCEPTED_TYPES: dict[type, tuple[type, ...]] = {bool: (bool, int), int: (int, float), float: (int, float)}


class Parameters(dict[str, Any]):
    """The parameters of a member. `values` contains the values that differ from the defaults."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        unknown_names = sorted(set(values) - set(DEFAULTS))
        if unknown_names:
            raise ValueError(f"parameters has {unknown_names[0]!r}, which the simulation does not support")
        super().__init__({**DEFAULTS, **values})

    def change(self, name: str, value: Any) -> Any:
        """Set a parameter, and return its previous value."""
        if name not in self:
            raise error(NO_CODE, f"attempted to set unrecognized parameter [{name}]")
        if not isinstance(value, _ACCEPTED_TYPES.get(type(DEFAULTS[name]), type(DEFAULTS[name]))):
            raise error(14, f"parameter {name} cannot be {value!r}")
        old_value, self[name] = self[name], value
        return old_value

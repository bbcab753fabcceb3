"""All mutations, by area."""

from __future__ import annotations

from collections.abc import Mapping

from tests.mutations import cmap, execution, limits, load_balanced, ocsp, reading, rows, sdam, telemetry, wire
from tests.mutations.mutation import Mutation

AREAS: Mapping[str, tuple[Mutation, ...]] = {
    "cmap": cmap.MUTATIONS,
    "sdam": sdam.MUTATIONS,
    "load balanced": load_balanced.MUTATIONS,
    "execution": execution.MUTATIONS,
    "limits": limits.MUTATIONS,
    "reading": reading.MUTATIONS,
    "telemetry and status": telemetry.MUTATIONS,
    "ocsp": ocsp.MUTATIONS,
    "wire and stable_api": wire.MUTATIONS,
    "single rows": rows.MUTATIONS,
}

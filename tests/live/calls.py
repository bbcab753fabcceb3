"""The calls that are compared with PyMongo's, on a deployment; and what gmongo makes of them on a simulated one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gmongo.testing import DeploymentProcess
from tests.differential.differences import check, same
from tests.differential.scene import DATABASE, ForeignDatabaseError, Outcome, Scene, calls
from tests.live.report import Differs, Report, Skip
from tests.live.target import Target

PART = "calls beside PyMongo"
_TABLES = Path(__file__).parents[1] / "differential" / "calls"


def run(target: Target, report: Report) -> None:
    """Play all calls."""
    if target.has_tls:
        raise Skip("what notes the commands on their way reads no TLS")
    with _scene(target) as scene, _simulated(target) as simulated:
        for call in (call for path in sorted(_TABLES.glob("*.txt")) for call in calls(path)):
            with report.case(PART, f"{call.name}: {call.source}"):
                _compare(call.source.replace(DATABASE, target.database("calls")), scene, simulated)


def _compare(source: str, scene: Scene, simulated: Scene) -> None:
    try:
        theirs, ours = scene.compare(source)
    except ForeignDatabaseError as refusal:
        raise Skip(f"not without --disposable: {refusal}") from None
    check(source, theirs, ours)
    simulation = simulated.play_gmongo(source)
    if not (same(ours.error, simulation.error) and same(ours.returned, simulation.returned)):
        raise Differs(f"gmongo returns {_told(ours)}; on a simulated deployment {_told(simulation)}")


def _told(outcome: Outcome) -> str:
    return f"{outcome.error}, {outcome.text}" if outcome.error is not None else f"{outcome.returned}"


@contextmanager
def _scene(target: Target) -> Iterator[Scene]:
    primary = target.client.primary
    host, _, port = ("{}:{}".format(*primary) if primary else target.hosts[0]).rpartition(":")
    uri = target.uri_of(f"{host}:{port}")
    login, at, _ = uri.removeprefix("mongodb://").rpartition("@")
    direct = "" if target.topology == "load-balanced" else "directConnection=true"
    options = "&".join(filter(None, [uri.partition("?")[2], direct]))
    scene = Scene(
        (host, int(port)), "a server in use", None, target.database("calls"), not target.disposable, login + at, options
    )
    try:
        yield scene
    finally:
        scene.close()


@contextmanager
def _simulated(target: Target) -> Iterator[Any]:
    with DeploymentProcess("--replica-set", "1") as deployment:
        host, port = deployment.members[0].address.rsplit(":", 1)
        scene = Scene((host, int(port)), "simulation", database=target.database("calls"))
        try:
            yield scene
        finally:
            scene.close()

"""Compare calls: gmongo and PyMongo on the target deployment, and gmongo on a simulated
deployment.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from gmongo.testing import DeploymentProcess
from gmongo.testing.simulation.versions import NEWEST_VERSION, OLDEST_VERSION
from gmongo.uri_parser import parse_uri
from tests.differential.call_runner import DATABASE, CallRunner, ForeignDatabaseError, Outcome, read_calls
from tests.differential.differences import are_equal, check_outcomes, explaining_differences
from tests.differential.fault_attribution import attribute_difference
from tests.live.report import DifferenceError, Report, Skip
from tests.live.target import SYSTEM_DATABASES, Target

_DEPLOYMENT_ARGUMENTS = {
    "single": ["--standalone"],
    "replicaset": ["--replica-set", "1"],
    "sharded": ["--sharded", "1"],
    "load-balanced": ["--load-balanced", "1"],
}
PART = "calls beside PyMongo"
_TABLES_FOLDER = Path(__file__).parents[1] / "differential" / "calls"


def run(target: Target, report: Report, source_part: str) -> None:
    """Compare the outcomes of all calls. Hide messages that PyMongo prints on standard error.

    :param source_part: Compare only the calls whose source code contains this text.
    """
    if target.has_tls:
        raise Skip("the recording proxy does not support TLS")
    with _call_runner(target) as runner, _simulated_call_runner(target) as simulated, redirect_stderr(io.StringIO()):
        foreign_names = set(target.client.list_database_names()) - SYSTEM_DATABASES - {target.db_name("calls")}
        for call in (call for path in sorted(_TABLES_FOLDER.glob("*.txt")) for call in read_calls(path)):
            if source_part not in call.source:
                continue
            with report.case(PART, f"{call.name}: {call.source}"):
                _compare(call.source.replace(DATABASE, target.db_name("calls")), runner, simulated, foreign_names)


def _compare(source: str, runner: CallRunner, simulated: CallRunner, foreign_names: Collection[str]) -> None:
    try:
        theirs, ours = runner.compare(source)
        if explaining_differences(source, theirs, ours) is None:
            _, theirs, ours, reason = attribute_difference(runner, source, lambda: simulated)
            if reason:
                raise Skip(reason)
    except ForeignDatabaseError as refusal:
        raise Skip(f"not without --disposable: {refusal}") from None
    check_outcomes(source, theirs, ours)
    if any(f"('str', {name!r})" in repr(ours.returned) for name in foreign_names):
        raise Skip("the call returns the names of databases that do not belong to the run")
    simulation = simulated.run_gmongo_call(source)
    if not (are_equal(ours.error, simulation.error) and are_equal(ours.returned, simulation.returned)):
        raise DifferenceError(f"gmongo returns {_text(ours)}, but on a simulated deployment {_text(simulation)}")


def _text(outcome: Outcome) -> str:
    return f"{outcome.error}, {outcome.text}" if outcome.error is not None else f"{outcome.returned}"


@contextmanager
def _call_runner(target: Target) -> Iterator[CallRunner]:
    if target.topology == "load-balanced":
        uri = target.uri_of_one_mongos()
        host, port = parse_uri(uri)["nodelist"][0]
    else:
        primary = target.client.primary
        host, _, port = ("{}:{}".format(*primary) if primary else target.hosts[0]).rpartition(":")
        uri = target.uri_with_hosts(f"{host}:{port}")
    login, at, _ = uri.removeprefix("mongodb://").rpartition("@")
    own_options = [each for each in uri.partition("?")[2].split("&") if each not in ("", "loadBalanced=true")]
    options = "&".join([*own_options, _options(target)])
    runner = CallRunner(
        (host, int(port)), "a server in use", None, target.db_name("calls"), not target.disposable, login + at, options
    )
    try:
        yield runner
    finally:
        runner.close()


@contextmanager
def _simulated_call_runner(target: Target) -> Iterator[Any]:
    """Yield a call runner on a simulated deployment with the target's topology, and with the supported
    version that is nearest to the target's version.
    """
    release = tuple(map(int, target.version.split(".")[:2]))
    version = "{}.{}".format(*min(max(release, OLDEST_VERSION), NEWEST_VERSION))
    with DeploymentProcess(*_DEPLOYMENT_ARGUMENTS[target.topology], "--version", version) as deployment:
        (address,) = parse_uri(deployment.uri)["nodelist"]
        runner = CallRunner(address, "simulation", database=target.db_name("calls"), options=_options(target))
        try:
            yield runner
        finally:
            runner.close()


def _options(target: Target) -> str:
    return "loadBalanced=true" if target.topology == "load-balanced" else "directConnection=true"

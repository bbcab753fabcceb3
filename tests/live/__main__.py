"""``python -m tests.live URI`` checks gmongo on the deployment that the URI selects.

The program writes the results to ``report.html`` and ``report.json``. By default, the program uses
only its own databases, and sends no command that affects the whole deployment. Official tests, prose
tests, fail points, step-downs and `killAllSessions` require the option --disposable.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent

import gmongo
from gmongo.errors import PyMongoError
from gmongo.server_api import ServerApi
from gmongo.testing import URI_VARIABLE
from tests.live import answers, calls, campaigns, official, prose_tests
from tests.live.mongod import MECHANISMS, StartedDeployment, run_mongod
from tests.live.report import CASE_TIMEOUT, Outcome, Report, SilentError, Skip
from tests.live.target import RefusedError, Target

_DISPOSABLE_PARTS = {
    official.PART: lambda target, report, options: official.run(target, report, options.case),
    prose_tests.PART: lambda target, report, options: prose_tests.run(target, report, options.case),
}
PARTS: dict[str, Callable[[Target, Report, argparse.Namespace], None]] = {
    answers.DOCUMENTED_PART: lambda target, report, options: answers.compare_recorded_replies(
        target, report, options.case
    ),
    answers.RANDOM_PART: lambda target, report, options: answers.compare_random_calls(
        target, report, options.calls, options.seed
    ),
    calls.PART: lambda target, report, options: calls.run(target, report, options.case),
    campaigns.CAMPAIGN_PART: lambda target, report, options: campaigns.run(target, report, options.steps, options.seed),
    campaigns.MAIN_JOB_PART: lambda target, report, options: campaigns.run_example_application(target, report),
    **_DISPOSABLE_PARTS,
}


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.live", description=__doc__)
    uri = os.environ.get(URI_VARIABLE)
    parser.add_argument("uri", nargs="?", default=uri, help=f"connection string, default: {URI_VARIABLE}")
    parser.add_argument("--mongod", type=int, metavar="N", help="start a replica set of N members (0: a standalone)")
    parser.add_argument("--program", help="with --mongod: path of mongod")
    parser.add_argument("--tls", action="store_true", help="with --mongod: clients must use TLS")
    parser.add_argument("--mechanism", choices=MECHANISMS, help="with --mongod: access control, with this mechanism")
    parser.add_argument("--compressor", help="with --mongod: the compressor of all clients")
    parser.add_argument("--disposable", metavar="NAME", help="permit all commands: name of replica set, or HOST:PORT")
    parser.add_argument("--one-mongos", metavar="URI", help="load balancer with one mongos, if URI has several")
    parser.add_argument("--api-version", metavar="N", help="Stable API version of all clients")
    parser.add_argument("--only", action="append", choices=PARTS, help="part to run, repeatable")
    parser.add_argument("--case", default="", help="text in the names of the cases to run")
    parser.add_argument("--calls", type=int, default=1000, metavar="N", help="random calls (1000)")
    parser.add_argument("--steps", type=int, default=3, metavar="N", help="steps of the campaign (3)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of random calls and the campaign (0)")
    parser.add_argument("--report", type=Path, default=Path("live-report"), metavar="DIR", help="default: live-report")
    return parser


def main(arguments: list[str]) -> int:
    """Run the parts that the command line selects.

    Return 1 if a case fails, otherwise 0. If the deployment does not permit the run, exit with 2.
    """
    parser = _create_parser()
    options = parser.parse_args(arguments)
    if options.mongod is not None:
        mongod_options = {name: getattr(options, name) for name in ("program", "tls", "mechanism", "compressor")}
        with run_mongod(options.mongod, api_version=options.api_version, **mongod_options) as deployment:
            options.uri, options.disposable = deployment.uri, deployment.name
            return _run_all(parser, options, deployment)
    if not options.uri:
        parser.error(f"there is no connection string, neither as an argument nor in {URI_VARIABLE}")
    return _run_all(parser, options, None)


def _run_all(parser: argparse.ArgumentParser, options: argparse.Namespace, deployment: StartedDeployment | None) -> int:
    try:
        client_options = {"server_api": ServerApi(options.api_version)} if options.api_version else {}
        target = Target(options.uri, client_options, options.one_mongos, deployment and deployment.replica_set)
    except PyMongoError as error:
        parser.error(str(error))
    try:
        if options.disposable is not None:
            target.permit_all_commands(options.disposable)
        report = Report(_properties_of_run(target))
        for name in options.only or PARTS:
            _run(name, target, report, options)
    except RefusedError as refusal:
        parser.error(str(refusal))
    finally:
        target.close()
    report.write(options.report)
    print(*report.lines(), options.report / "report.html", sep="\n")
    return int(report.has_failed())


def _run(name: str, target: Target, report: Report, options: argparse.Namespace) -> None:
    if name in _DISPOSABLE_PARTS and not target.disposable:
        report.add(name, "all", Outcome.SKIPPED, "needs --disposable")
        return
    print(f"{name} …", flush=True)
    try:
        with gevent.Timeout(CASE_TIMEOUT, SilentError("the deployment no longer answers")):
            target.drop_databases()  # this part of the run must not find the data of earlier parts
        PARTS[name](target, report, options)
    except Skip as reason:
        report.add(name, "all", Outcome.SKIPPED, str(reason))
    except Exception as error:  # after an error in one part, the next parts still run
        report.add(name, "the whole part", Outcome.FAILED, f"{type(error).__name__}: {error}")


def _properties_of_run(target: Target) -> dict[str, Any]:
    return {
        "deployment": f"{target.topology} {target.name}, MongoDB {target.version}",
        "servers": ", ".join(target.hosts),
        "gmongo": gmongo.version,
        "Python": sys.version.split()[0],
        "disposable": target.disposable,
        "databases": f"{target.database_prefix}_*",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

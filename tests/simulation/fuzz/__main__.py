"""Send random commands to a real server and to the simulation, and print the cases whose answers
differ.

``python -m tests.simulation.fuzz --seconds 60`` starts a `mongod`, and sends commands for 60 seconds.
A printed case has the format of the files in ``tests/simulation/answers/data``. The run fails if the
share of differing answers exceeds 0.3 % by more than three standard deviations.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from time import monotonic
from typing import Any

from gmongo import MongoClient
from gmongo.errors import AutoReconnect, ServerSelectionTimeoutError
from gmongo.testing import Deployment
from tests.live.mongod import run_mongod
from tests.simulation.answers.__main__ import common_answer
from tests.simulation.answers.case import DATABASE_NAME, Case, difference, run_case
from tests.simulation.answers.notation import to_line

from .grammar import Grammar
from .minimise import minimise

SHARE_LIMIT = 0.003  # Share of the operations whose answers may differ.
_MAX_SHOWN = 40  # Maximum number of cases that the program minimises and prints.
_REFUSED_CODE = 115


class Comparison:
    """A comparison of the answers of a real server and of the simulation to the same cases.

    :param server: a database of the real server.
    :param simulation: a database of the simulation.
    """

    def __init__(self, server: Any, simulation: Any) -> None:
        self.counts: Counter[str] = Counter()
        self.shown: dict[str, dict[str, Any]] = {}
        self._version = server.client.server_info()["version"]
        self._server = server
        self._simulation = simulation

    def run_case(self, rule: str, fields: dict[str, Any]) -> None:
        """Run a random case on the server and the simulation. Count equal answers, different answers,
        and commands that the simulation refuses.

        Print a minimised case for each operation whose answers differ, up to 40 cases in total.

        :param rule: the name of the grammar rule of the case.
        """
        each, check = fields.pop("each", False), fields.pop("check", None)
        commands = fields["run"]
        if check:
            commands = [step for command in commands for step in (command, check)]
        try:
            recorded = self._run(self._server, {**fields, "run": commands})
        except ServerSelectionTimeoutError:  # the server has ended
            raise
        except AutoReconnect as error:  # the server closed the connection of a command
            self.counts["closed"] += 1
            print(f"{error}: {to_line({**fields, 'run': commands})}", flush=True)
            return
        answered = self._run(self._simulation, {**fields, "run": commands})
        for index, (expected, actual) in enumerate(zip(recorded, answered, strict=True)):
            differs = difference(expected, actual) is not None
            refused = _error_code(actual) == _REFUSED_CODE != _error_code(expected)
            case = {**fields, "run": [commands[index]] if each else commands[: index + 1]}
            codes = self._differing_codes(case) if differs and not refused else None
            differs = codes is not None
            self.counts["refused" if refused else "differ" if differs else "same"] += 1
            self.counts[f"{rule} {'refused' if refused else 'differ' if differs else 'same'}"] += 1
            if codes is not None and len(self.shown) < _MAX_SHOWN:
                self._print_minimised_case(case, codes)
            if (differs or refused) and not each:
                break

    def _run(self, database: Any, fields: dict[str, Any]) -> Any:
        replies = run_case(Case("fuzz", fields), database)
        return [
            without_documented_differences(command, reply)
            for command, reply in zip(fields["run"], replies, strict=True)
        ]

    def _run_three_times(self, fields: dict[str, Any]) -> list[Any]:
        """Return the answers of two runs on the server and of a run on the simulation."""
        return [self._run(side, fields) for side in (self._server, self._server, self._simulation)]

    def _differing_codes(self, fields: dict[str, Any]) -> tuple[Any, Any] | None:
        """Return the error codes of the server and the simulation if their last answers differ, and
        None otherwise.

        Ignore refusals by the simulation, and parts that differ between two runs on the server.
        """
        try:
            first, second, actual = (
                self._run(side, fields)[-1] for side in (self._server, self._server, self._simulation)
            )
            if _error_code(actual) != _REFUSED_CODE and difference(common_answer(first, second), actual) is not None:
                return _error_code(first), _error_code(actual)
        # Two runs on the server returned different types, or the minimiser made an invalid case.
        except Exception:
            return None
        return None

    def _print_minimised_case(self, fields: dict[str, Any], codes: tuple[Any, Any]) -> None:
        fields = minimise(fields, lambda smaller: self._differing_codes(smaller) == codes)
        answers = self._run_three_times(fields)
        text = difference(common_answer(answers[0][-1], answers[1][-1]), answers[2][-1]) or ""
        name = to_line(fields["run"][-1])[:100]
        if name not in self.shown:
            case = {"name": name, **fields, "answers": common_answer(*answers[:2]), "server": self._version}
            self.shown[name] = case
            print(f"{to_line(case)}\n    {text[:300]}", flush=True)


def without_documented_differences(command: Any, reply: Any) -> Any:
    """Return a reply in a form that hides the documented differences between simulation and server.

    The simulation may return reply fields, groups and distinct values in a different order than the
    server, and validation errors with incomplete details.
    """
    if not isinstance(reply, dict):
        return reply
    fields = {name: _without_details(reply[name]) for name in sorted(reply)}
    if isinstance(fields.get("values"), list):
        fields["values"] = sorted(fields["values"], key=to_line)
    if isinstance(fields.get("cursor"), dict):
        fields["cursor"] = dict(sorted(fields["cursor"].items()))
        if any(stage in to_line(command) for stage in ("$group", "$sortByCount")):
            fields["cursor"]["firstBatch"] = sorted(fields["cursor"]["firstBatch"], key=to_line)
    return fields


def _without_details(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_details(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_details(part) for name, part in value.items() if name not in ("errmsg", "details")}


def _error_code(answer: Any) -> Any:
    """Return the code of the first error in an answer, or None if the answer has no error."""
    if isinstance(answer, dict) and answer.get("writeErrors"):
        return answer["writeErrors"][0]["code"]
    return answer.get("code") if isinstance(answer, dict) else None


def permitted_share(operation_count: int) -> float:
    """Return the share of operations whose answers may differ: :data:`SHARE_LIMIT` plus three standard
    deviations.
    """
    return SHARE_LIMIT + 3 * (SHARE_LIMIT / operation_count) ** 0.5 if operation_count else SHARE_LIMIT


def commit_seed() -> int:
    """Return a number that depends only on the current commit."""
    text = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout
    return int(text[:8] or "0", 16)


@contextlib.contextmanager
def _server_uri(uri: str | None) -> Iterator[str]:
    if uri is not None:
        yield uri
        return
    with run_mongod(1, accepts_version_2=False) as deployment:
        yield deployment.uri


def main() -> int:
    """Compare answers until the limit ``--seconds`` or ``--operations``, and print the counts.

    Return 1 if too many answers differ, and 0 otherwise.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration (60)")
    parser.add_argument("--operations", type=int, help="number of operations to run, instead of a duration")
    parser.add_argument("--seed", type=int, help="seed of the random cases; by default, a hash of the commit")
    parser.add_argument("--uri", help="URI of a replica set of one member, with test commands; mongod by default")
    parser.add_argument("--rule", default="scenario", help="grammar rule of each case (scenario)")
    options = parser.parse_args()
    seed = commit_seed() if options.seed is None else options.seed
    rng = random.Random(seed)
    with (
        _server_uri(options.uri) as uri,
        Deployment.replica_set(members=1, log=False, version="6.0.5") as deployment,
        MongoClient(uri) as real,
        MongoClient(deployment.uri) as simulated,
    ):
        name = f"{DATABASE_NAME}_{seed}"
        comparison = Comparison(real[name], simulated[name])
        counts, end = comparison.counts, monotonic() + options.seconds
        total = 0
        while total < options.operations if options.operations else monotonic() < end:
            grammar = Grammar(rng)
            family = grammar.choice(options.rule)
            comparison.run_case(family, grammar.case(family))
            total = counts["same"] + counts["differ"] + counts["refused"]
        real.drop_database(name)
    share = counts["differ"] / (total - counts["refused"])
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count}")
    print(f"seed {seed}: {total} operations, {counts['refused']} refused, {counts['differ']} differences ({share:.2%})")
    return int(share > permitted_share(total - counts["refused"]))


if __name__ == "__main__":
    sys.exit(main())

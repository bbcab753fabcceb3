"""Send random commands to a real server and to the simulation, and print the cases that they answer differently.

``python -m tests.simulation.fuzz --seconds 60`` starts `mongod`. A printed case fits into a file of
``tests/simulation/answers/data``. The run fails if more than 0.3 % of the operations differ, with a tolerance for a
short run.
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
from gmongo.testing import Deployment
from tests.live.mongod import started
from tests.simulation.answers.__main__ import common
from tests.simulation.answers.case import NAME, Case, difference, run
from tests.simulation.answers.notation import line

from .grammar import Grammar
from .minimise import minimised

LIMIT = 0.003  # of the operations
_SHOWN = 40  # cases that are minimised and printed
_REFUSED = 115
_WITHOUT_DETAILS = ("$jsonSchema", "$nor", "$not")  # operators whose errors have no details in the simulation


class Comparison:
    """Runs cases on both servers.

    :param server: a database of the real server.
    :param simulation: a database of the simulation.
    """

    def __init__(self, server: Any, simulation: Any) -> None:
        self.counts: Counter[str] = Counter()
        self.shown: dict[str, dict[str, Any]] = {}
        self._version = server.client.server_info()["version"]
        self._server = server
        self._simulation = simulation

    def scenario(self, name: str, fields: dict[str, Any]) -> None:
        """Run a random scenario, count its operations, and keep a minimised case of each difference."""
        each, check = fields.pop("each", False), fields.pop("check", None)
        commands = fields["run"]
        if check:
            commands = [step for command in commands for step in (command, check)]
        recorded, answered = (self._answers(side, {**fields, "run": commands}) for side in self._sides)
        for index, (wanted, found) in enumerate(zip(recorded, answered, strict=True)):
            differs = difference(wanted, found) is not None
            refused = _code(found) == _REFUSED != _code(wanted)
            case = {**fields, "run": [commands[index]] if each else commands[: index + 1]}
            kind = self._kind(case) if differs and not refused else None
            differs = kind is not None
            self.counts["refused" if refused else "differ" if differs else "same"] += 1
            self.counts[f"{name} {'refused' if refused else 'differ' if differs else 'same'}"] += 1
            if kind is not None and len(self.shown) < _SHOWN:
                self._keep(case, kind)
            if (differs or refused) and not each:
                break

    @property
    def _sides(self) -> tuple[Any, Any]:
        return self._server, self._simulation

    def _answers(self, database: Any, fields: dict[str, Any]) -> Any:
        replies = run(Case("fuzz", fields), database)
        return [compared(command, reply) for command, reply in zip(fields["run"], replies, strict=True)]

    def _kind(self, fields: dict[str, Any]) -> tuple[Any, Any] | None:
        """Return the codes of the last answers if they differ in a part that is the same in two runs on the server."""
        try:
            first, second, found = (self._answers(side, fields)[-1] for side in (self._server, *self._sides))
            if _code(found) != _REFUSED and difference(common(first, second), found) is not None:
                return _code(first), _code(found)
        except Exception:  # the answer changes, or a minimised case is malformed
            return None
        return None

    def _keep(self, fields: dict[str, Any], kind: tuple[Any, Any]) -> None:
        fields = minimised(fields, lambda smaller: self._kind(smaller) == kind)
        answers = [self._answers(side, fields) for side in (self._server, *self._sides)]
        text = difference(common(answers[0][-1], answers[1][-1]), answers[2][-1]) or ""
        name = line(fields["run"][-1])[:100]
        if name not in self.shown:
            case = {"name": name, **fields, "answers": common(*answers[:2]), "server": self._version}
            self.shown[name] = case
            print(f"{line(case)}\n    {text[:300]}", flush=True)


def compared(command: Any, reply: Any) -> Any:
    """Omit documented differences: the order of a reply's own fields and of groups, and details of schemas."""
    if not isinstance(reply, dict):
        return reply
    fields = {name: _without_details(reply[name]) for name in sorted(reply)}
    if isinstance(fields.get("values"), list):
        fields["values"] = sorted(fields["values"], key=line)
    if isinstance(fields.get("cursor"), dict):
        fields["cursor"] = dict(sorted(fields["cursor"].items()))
        if any(stage in line(command) for stage in ("$group", "$sortByCount")):
            fields["cursor"]["firstBatch"] = sorted(fields["cursor"]["firstBatch"], key=line)
    return fields


def _without_details(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_details(part) for part in value]
    if not isinstance(value, dict):
        return value
    names = value if value.get("operatorName") not in _WITHOUT_DETAILS else ("operatorName",)
    return {name: _without_details(value[name]) for name in names if name != "errmsg"}


def _code(answer: Any) -> Any:
    """Return the code of the first error of an answer, or None."""
    if isinstance(answer, dict) and answer.get("writeErrors"):
        return answer["writeErrors"][0]["code"]
    return answer.get("code") if isinstance(answer, dict) else None


def limit_of(operations: int) -> float:
    """Return the limit for a number of operations, with three standard deviations of a short run."""
    return LIMIT + 3 * (LIMIT / operations) ** 0.5 if operations else LIMIT


def commit_seed() -> int:
    """Return a number that is the same for a commit."""
    text = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout
    return int(text[:8] or "0", 16)


@contextlib.contextmanager
def _server(uri: str | None) -> Iterator[str]:
    if uri is not None:
        yield uri
        return
    with started(1, accepts_version_2=False) as deployment:
        yield deployment.uri


def main() -> int:
    """Compare for a time, print the counts, and return 1 above the limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration (60)")
    parser.add_argument("--operations", type=int, help="number of operations, in place of the duration")
    parser.add_argument("--seed", type=int, help="the seed; a number of the commit by default")
    parser.add_argument("--uri", help="a replica set of one member, with test commands; started by default")
    parser.add_argument("--rule", default="scenario", help="the rule of the grammar of each scenario (scenario)")
    given = parser.parse_args()
    seed = commit_seed() if given.seed is None else given.seed
    chance = random.Random(seed)
    with (
        _server(given.uri) as uri,
        Deployment.replica_set(members=1, log=False, version="6.0.5") as deployment,
        MongoClient(uri) as real,
        MongoClient(deployment.uri) as simulated,
    ):
        name = f"{NAME}_{seed}"
        comparison = Comparison(real[name], simulated[name])
        counts, end = comparison.counts, monotonic() + given.seconds
        total = 0
        while total < given.operations if given.operations else monotonic() < end:
            grammar = Grammar(chance)
            family = grammar.choice(given.rule)
            comparison.scenario(family, grammar.case(family))
            total = counts["same"] + counts["differ"] + counts["refused"]
        real.drop_database(name)
    share = counts["differ"] / (total - counts["refused"])
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count}")
    print(f"seed {seed}: {total} operations, {counts['refused']} refused, {counts['differ']} differences ({share:.2%})")
    return int(share > limit_of(total - counts["refused"]))


if __name__ == "__main__":
    sys.exit(main())

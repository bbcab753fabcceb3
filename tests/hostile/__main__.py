"""``python -m tests.hostile``: the attacks in large.

Without a campaign's name all of them run in turn, `--cases` of each or for `--minutes` in all. ``soak`` takes
``--topology``, and goes on where another run ended with ``--first`` and the number that it told.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from tests.hostile.hellos import Hellos
from tests.hostile.late_replies import LateReplies
from tests.hostile.replies import Replies
from tests.hostile.soak import TOPOLOGIES, Soak
from tests.hostile.witness import Findings

_Campaign = Callable[[int, int, float | None, int], Findings]


def _soak(topology: str) -> _Campaign:
    def run(seed: int, cases: int, seconds: float | None, first: int) -> Findings:
        soak = Soak(topology, seed)
        soak.run(cases, seconds, first, lambda line: print(line, flush=True))
        print(soak.line())
        return soak.findings

    return run


def _late(seed: int, cases: int, seconds: float | None, first: int) -> Findings:
    return LateReplies(seed).run(cases, seconds, first, lambda line: print(line, flush=True))


CAMPAIGNS: dict[str, _Campaign] = {
    "replies": lambda seed, cases, seconds, first: Replies(seed).run(cases, seconds, first),
    "framing": lambda seed, cases, seconds, first: Replies(seed, 0.7).run(cases, seconds, first),
    "late": _late,
    "hellos": lambda seed, cases, seconds, first: Hellos(seed).run(cases, seconds, first),
}


def main(arguments: list[str]) -> int:
    """Run campaigns; returns how many violations there were, at most 100."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("campaign", nargs="?", choices=(*CAMPAIGNS, "soak"), help="one of them; all by default")
    parser.add_argument("--cases", type=int, default=100_000, help="cases of each, or interrupts of the soak")
    parser.add_argument("--minutes", type=float, help="how long in all; without limit by default")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"), help="random by default")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case, or step of the soak")
    parser.add_argument("--topology", choices=tuple(TOPOLOGIES), help="of the soak; all by default")
    given = parser.parse_args(arguments)
    wanted: dict[str, _Campaign] = {}
    if given.campaign != "soak":
        wanted |= {name: CAMPAIGNS[name] for name in CAMPAIGNS if given.campaign in (None, name)}
    if given.campaign in (None, "soak"):
        wanted |= {f"soak {name}": _soak(name) for name in TOPOLOGIES if given.topology in (None, name)}
    seconds = None if given.minutes is None else given.minutes * 60 / len(wanted)
    violations = 0
    for run in wanted.values():
        findings = run(given.seed, given.cases, seconds, given.first)
        print(findings.report(), flush=True)
        violations += len(findings.violations)
    return min(violations, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

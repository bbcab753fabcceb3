"""``python -m tests.hostile`` runs long campaigns: a client communicates with servers that send wrong
replies or fail.

Without a campaign name, all campaigns run one after another. `--cases` is the number of cases (or
interruptions) of each campaign, and `--minutes` is the time limit of all campaigns together.
`--topology` selects the deployment of the campaign ``soak``. To continue a run that prints step
numbers, pass its seed as `--seed`, and the last number after ``next step`` as `--first`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from tests.hostile.invariants import CampaignResults
from tests.hostile.late_replies import LateReplies
from tests.hostile.malformed_hellos import MalformedHellos
from tests.hostile.malformed_replies import MalformedReplies
from tests.hostile.soak import TOPOLOGIES, Soak

_Campaign = Callable[[int, int, float | None, int], CampaignResults]


def _soak_campaign(topology: str) -> _Campaign:
    def run(seed: int, case_count: int, seconds: float | None, first_number: int) -> CampaignResults:
        soak = Soak(topology, seed)
        soak.run(case_count, seconds, first_number, lambda line: print(line, flush=True))
        print(soak.line())
        return soak.findings

    return run


def _late_replies(seed: int, case_count: int, seconds: float | None, first_number: int) -> CampaignResults:
    return LateReplies(seed).run(case_count, seconds, first_number, lambda line: print(line, flush=True))


CAMPAIGNS: dict[str, _Campaign] = {
    "replies": lambda seed, count, seconds, first_number: MalformedReplies(seed).run(count, seconds, first_number),
    "framing": lambda seed, count, seconds, first_number: MalformedReplies(seed, 0.7).run(count, seconds, first_number),
    "late": _late_replies,
    "hellos": lambda seed, count, seconds, first_number: MalformedHellos(seed).run(count, seconds, first_number),
}


def main(arguments: list[str]) -> int:
    """Run campaigns. Return the number of violations as exit status, at most 100."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("campaign", nargs="?", choices=(*CAMPAIGNS, "soak"), help="all campaigns by default")
    parser.add_argument("--cases", type=int, default=100_000, help="cases of each campaign (late, soak: interrupts)")
    parser.add_argument("--minutes", type=float, help="total time in minutes, no limit by default")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"), help="random by default")
    parser.add_argument("--first", type=int, default=0, help="number of the first case, or of the first step")
    parser.add_argument("--topology", choices=tuple(TOPOLOGIES), help="topology of the soak, all topologies by default")
    options = parser.parse_args(arguments)
    campaigns: dict[str, _Campaign] = {}
    if options.campaign != "soak":
        campaigns |= {name: CAMPAIGNS[name] for name in CAMPAIGNS if options.campaign in (None, name)}
    if options.campaign in (None, "soak"):
        campaigns |= {f"soak {name}": _soak_campaign(name) for name in TOPOLOGIES if options.topology in (None, name)}
    seconds = None if options.minutes is None else options.minutes * 60 / len(campaigns)
    violation_count = 0
    for campaign in campaigns.values():
        findings = campaign(options.seed, options.cases, seconds, options.first)
        print(findings.report(), flush=True)
        violation_count += len(findings.violations)
    return min(violation_count, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

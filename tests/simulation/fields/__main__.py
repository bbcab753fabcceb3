"""Send malformed commands to a server and to a simulated deployment, and compare the replies.

``python -m tests.simulation.fields HOST:PORT HOST:PORT --seed 1 --count 5000`` prints the cases whose
replies differ. The server must be a replica set of one member that requires no authentication and
accepts test commands.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from .compare import differences


def main(arguments: Sequence[str]) -> int:
    """Compare the replies. Return 1 if more than 2 % of all cases differ, and 0 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.fields", description=__doc__)
    parser.add_argument("servers", metavar="SERVER", nargs=2, help="a server and a simulated deployment")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5000)
    options = parser.parse_args(arguments)
    outcome_counts: Counter[str] = Counter()
    for case, kind, real, simulated in differences(*options.servers, options.seed, options.count, outcome_counts):
        print(f"{kind}: {case.name} {case.fault} on {case.database}: {case.pairs!r:.500}")
        print(f"    server {real!r:.300}\n    simulated {simulated!r:.300}")
    differing = options.count - outcome_counts["same"] - outcome_counts["refused"]
    print(
        f"{options.count} cases, {differing} differ: {100 * differing / options.count:.2f} %",
        dict(outcome_counts),
    )
    return int(differing > 0.02 * options.count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Record the table of command fields from a server, or compare a simulated deployment with a server.

``python -m tests.simulation.fields --record HOST:PORT`` writes the table that ``gmongo.testing`` uses. ``python -m
tests.simulation.fields --compare HOST:PORT HOST:PORT --seed 1 --count 5000`` prints the cases whose replies differ.
Each server must be a replica set of one member that requires no authentication and accepts test commands.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence

from tests.simulation.answers.notation import line

from .compare import differences
from .recorder import NAMES, TABLE, Recorder


def main(arguments: Sequence[str]) -> int:
    """Record or compare the table. Return 1 if the replies of more than 2 % of the compared cases differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.fields", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--record", metavar="SERVER", help="write the fields that this server has")
    action.add_argument("--compare", metavar="SERVER", nargs=2, help="a server and a simulated deployment")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5000)
    options = parser.parse_args(arguments)
    if options.record:
        recorder = Recorder(options.record)
        TABLE.write_text("".join(f"{line(each)}\n" for each in recorder.lines()), encoding="utf-8")
        names = {int(code): name for code, name in json.loads(NAMES.read_text(encoding="utf-8")).items()}
        names = {code: name for code, name in (names | recorder.names).items() if not name.startswith("Location")}
        NAMES.write_text(f"{json.dumps(dict(sorted(names.items())), indent=1)}\n", encoding="utf-8")
        return 0
    counts: Counter[str] = Counter()
    for case, kind, real, simulated in differences(*options.compare, options.seed, options.count, counts):
        print(f"{kind}: {case.name} {case.fault} on {case.database}: {case.pairs!r:.500}")
        print(f"    server {real!r:.300}\n    simulated {simulated!r:.300}")
    differing = options.count - counts["same"] - counts["refused"]
    print(f"{options.count} cases, {differing} differ: {100 * differing / options.count:.2f} %", dict(counts))
    return int(differing > 0.02 * options.count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m tests.mutations [--only fork,w50]`` runs the named mutations of ``mutations.jsonl``.

The options ``--random 100 --seed 7 [--only cmap,wire/tls.py]`` run random mutations. Each mutation
changes a copy of the project. For a named mutation, the program first runs the tests that its row
names, and then all tests in the folders of these tests. For a random mutation, the program runs
tests that reach the changed line. The failure of a test does not count if the test also fails
without a mutation.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.mutations import named_trials, random_trials


def main() -> int:
    """Run the selected mutations. Return 1 if a mutation survives or cannot run, and 2 if a name is
    unknown.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of parallel mutations")
    parser.add_argument(
        "--only",
        default="",
        help="comma-separated names of mutations or subjects (with --random: of packages or files)",
    )
    random = parser.add_argument_group("random mutations")
    random.add_argument(
        "--random",
        type=int,
        metavar="N",
        help="number of mutations (without --only: of all packages except testing)",
    )
    random.add_argument("--seed", type=int, default=1, help="seed of the random mutations")
    random.add_argument("--seconds", type=float, default=30, help="time for the tests of a mutation (default: 30)")
    random.add_argument("--folders", default="", help="folders of tests, separated by commas (default: fast folders)")
    options = parser.parse_args()
    options.only = [name for name in options.only.split(",") if name]
    try:
        trials = random_trials if options.random is not None else named_trials
        return trials.main(options)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

"""``python -m tests.mutations [--only fork,w50]`` runs mutations of ``mutations.jsonl``.

With ``--random 100 --seed 7 [--only cmap,wire/tls.py]``, the program runs random mutations. Each
mutation changes a copy of the project. For a mutation of ``mutations.jsonl``, the program runs the
tests that the row names. If these tests pass, the program runs all tests in their folders. For a
random mutation, the program runs tests that pass without the change and can detect the change. If a
test of a row also fails without the mutation, the program does not try the mutation.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.mutations import named_trials, random_trials


def main() -> int:
    """Run the selected mutations. Return 0 if tests detect all mutations, 2 if a name is unknown, and
    otherwise 1.
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

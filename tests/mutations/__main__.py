"""Try mutations: ``python -m tests.mutations [--only fork,w50]``, or, drawn at random, ``--random 100 --seed 7 [--only cmap,wire/tls.py]``.

Each is applied to a copy of the project, and tests run there: those that the table names and then all of their folders, or, for one that
was drawn, those that reach the line. A test that is red without a mutation is named, and proves nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.mutations import drawn, named


def main() -> int:
    """Try the mutations that were asked for; 1 if one survived or could not be tried, 2 if there are none of that name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument(
        "--only",
        default="",
        help="names of mutations or subjects, or with --random of packages or files, with commas between",
    )
    parser.add_argument("--own-only", action="store_true", help="do not run the folders of tests that passed")
    random = parser.add_argument_group("drawn at random")
    random.add_argument(
        "--random", type=int, metavar="N", help="how many; of all packages but testing, if none is named"
    )
    random.add_argument("--seed", type=int, default=1, help="another one draws others")
    random.add_argument("--seconds", type=float, default=30, help="of a processor, for the tests of each (default: 30)")
    random.add_argument("--folders", default="", help="of tests, with commas between, instead of all that are quick")
    random.add_argument(
        "--record-again", action="store_true", help="record all tests, whether they have changed or not"
    )
    random.add_argument("--keep", type=Path, help="write the survivors to a file")
    random.add_argument("--again", type=Path, help="try those of such a file instead of drawing")
    options = parser.parse_args()
    options.only = [name for name in options.only.split(",") if name]
    try:
        return drawn.main(options) if options.random is not None or options.again else named.main(options)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

"""``python -m gmongo.stable_api app.py ...``: run a program, and tell what in it is outside of API version 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gmongo._run_program import run_program
from gmongo.monitoring import register
from gmongo.stable_api import Audit
from gmongo.stable_api.report import write

_FOUND = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with all its clients audited, and write the report when it ends, in whatever way.

    Returns the program's exit status; with ``--check``, 3 if that is 0 and something was found.
    """
    options = _parser().parse_args(arguments)
    audit = Audit()
    register(audit)
    try:
        status = run_program(options.module, options.program, options.arguments)
    finally:  # also when an exception of the program passes through
        write(audit, options.output, options.json)
    return _FOUND if options.check and status == 0 and not audit.is_clean else status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gmongo.stable_api",
        description="Run a program, and tell which of its commands are outside of MongoDB's API version 1.",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module, not a file")
    parser.add_argument("--json", action="store_true", help="write the report as JSON")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report there, not to standard error")
    parser.add_argument("--check", action="store_true", help=f"exit with status {_FOUND} if something was found")
    parser.add_argument("program", help="a Python file; with -m, a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    return parser


if __name__ == "__main__":
    sys.exit(main())

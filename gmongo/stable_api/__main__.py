"""``python -m gmongo.stable_api app.py ...``: run a program, and report its commands outside of API version 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gmongo._run_program import run_program
from gmongo.monitoring import register
from gmongo.stable_api import Audit
from gmongo.stable_api.audit import write

_FINDINGS_STATUS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program with an audit of all clients, and write the report at the end of the program.

    Return the exit status of the program. With ``--check``, return 3 if the exit status is 0 and the
    audit found commands that the server may refuse.
    """
    options = _create_parser().parse_args(arguments)
    audit = Audit()
    register(audit)
    try:
        status = run_program(options.module, options.program, options.arguments)
    finally:  # write the report even if the program raises an exception
        write(audit, options.output, options.json)
    return _FINDINGS_STATUS if options.check and status == 0 and not audit.is_clean else status


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gmongo.stable_api",
        description="Run a program, and report its commands that are outside of MongoDB's API version 1.",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module, not a file")
    parser.add_argument("--json", action="store_true", help="write the report as JSON")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report to FILE instead of standard error")
    parser.add_argument("--check", action="store_true", help=f"exit with status {_FINDINGS_STATUS} if the audit fails")
    parser.add_argument("program", help="a Python file; with -m, a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    return parser


if __name__ == "__main__":
    sys.exit(main())

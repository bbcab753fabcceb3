"""``python -m gmongo app.py ...``: run a program for ``pymongo`` on gmongo, with the standard library patched."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

_MISSING_NAMES_STATUS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Patch the standard library, replace PyMongo by gmongo, and run the program.

    With ``--check``, also print the PyMongo names that the program uses. Return the exit status of
    the program. With ``--check``, return 3 instead of 0 if gmongo lacks at least one of these names.
    """
    options = _create_parser().parse_args(arguments)
    if not options.no_patch:
        from gevent import monkey

        monkey.patch_all()
    # Import these modules after the patch, because they import ssl and threading, which gevent must patch first.
    from gmongo._run_program import run_program
    from gmongo._stand_in import install

    stand_in = install()
    if not options.check:
        return run_program(options.module, options.program, options.arguments)

    from gmongo._stand_in.import_audit import ImportAudit, write_report

    audit = ImportAudit()
    stand_in.on_import = audit.record_import
    try:
        status = run_program(options.module, options.program, options.arguments)
    finally:  # write the report even after an exception in the program
        missing = audit.find_missing()
        write_report(audit, missing, sys.stderr)
    return _MISSING_NAMES_STATUS if status == 0 and missing else status


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gmongo",
        usage="%(prog)s [--no-patch] [--check] (-m MODULE | PROGRAM) [ARGUMENT ...]",
        description="Run a program that uses pymongo, directly or through its libraries, on gmongo.",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module, not a file")
    parser.add_argument("--no-patch", action="store_true", help="do not call gevent.monkey.patch_all() first")
    parser.add_argument(
        "--check",
        action="store_true",
        help="when the program has ended, print the names of pymongo that the program used; exit with status "
        f"{_MISSING_NAMES_STATUS} instead of 0 if gmongo does not have one of these names",
    )
    parser.add_argument("program", metavar="PROGRAM", help="a Python file; with -m, a module")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="an argument of the program")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Write the answers of a server to data files, or compare the answers of a server with the data
files.

``python -m tests.simulation.answers --record URI [files]`` writes the server's answers and its
version to the data files. ``python -m tests.simulation.answers --check URI [files]`` fails if an
answer of the server differs from the recorded answer. The server must be a replica set of one member
that requires no authentication and accepts test commands. Both commands use the database
``gmongo_answers``, and finally drop this database.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from gmongo import MongoClient

from .case import DATABASE_NAME, Case, cases, difference, files, run_case, type_name
from .notation import is_wrapper, to_line


def main(arguments: Sequence[str]) -> int:
    """Record or check answers. Return 1 if the check finds a difference, and 0 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.answers", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--record", metavar="URI", help="write the answers of this server")
    action.add_argument("--check", metavar="URI", help="compare the answers of this server with the files")
    parser.add_argument("files", nargs="*", help="names of data files without the ending; all files by default")
    options = parser.parse_args(arguments)
    with MongoClient(options.record or options.check) as client:
        version = client.server_info()["version"]
        try:
            if options.check:
                return check(client[DATABASE_NAME], version, options.files)
            for path in files(options.files):
                lines = [to_line(record_case(case, client[DATABASE_NAME], version)) for case in cases(path.stem)]
                path.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
        finally:
            client.drop_database(DATABASE_NAME)
    return 0


def check(database: Any, version: str, names: Sequence[str]) -> int:
    """Run the cases whose answers belong to the major and minor version of the server.

    Print the cases whose answers differ. Return 1 if any answers differ, and 0 otherwise.
    """
    case_count = difference_count = 0
    release = version.split(".")[:2]
    for case in cases(*names):
        if case.version.split(".") != release:
            continue
        case_count += 1
        mismatch = difference(case.expected, run_case(case, database))
        if mismatch:
            difference_count += 1
            print(f"{case.file}: {case.name}\n    {mismatch}")
    print(f"{case_count} cases, {difference_count} differences")
    return int(difference_count > 0)


def record_case(case: Case, database: Any, version: str) -> dict[str, Any]:
    """Run a case twice on a server, and return the fields of the case with the new answers.

    If the answers come from the manual or the source code of MongoDB, return the fields unchanged.
    """
    if "documented" in case.fields:
        return case.fields
    fields = {name: value for name, value in case.fields.items() if name not in ("answers", "server")}
    return {**fields, "answers": common_answer(run_case(case, database), run_case(case, database)), "server": version}


def common_answer(first: Any, second: Any) -> Any:
    """Return the answer of the first run of a case, with ``{"$any": type_name}`` in place of each
    value that differs in the second run.
    """
    if isinstance(first, dict) and isinstance(second, dict) and list(first) == list(second) and not is_wrapper(first):
        return {name: common_answer(part, second[name]) for name, part in first.items()}
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [common_answer(*parts) for parts in zip(first, second, strict=True)]
    if to_line(first) == to_line(second):
        return first
    if type_name(first) != type_name(second):
        raise ValueError(f"two runs answer {to_line(first)} and {to_line(second)}")
    return {"$any": type_name(first)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

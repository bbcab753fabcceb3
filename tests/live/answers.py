"""Compare the replies of the server with recorded replies of MongoDB, and with replies of the
simulation.
"""

from __future__ import annotations

import random

from tests.live.report import DifferenceError, Report, Skip
from tests.live.target import Target
from tests.simulation.answers.case import Case, cases, difference, run_case
from tests.simulation.answers.notation import to_line
from tests.simulation.answers.test_answers import simulation
from tests.simulation.fuzz.__main__ import without_documented_differences
from tests.simulation.fuzz.grammar import Grammar

DOCUMENTED_PART, RANDOM_PART = "documented answers", "random calls"

# Error codes with which a server rejects an unsupported command or stage: CommandNotFound,
# CommandNotSupported, InvalidPipelineOperator, NotImplemented, and the code of unknown stages.
_UNSUPPORTED_CODES = frozenset({59, 115, 168, 238, 40324})
# Error codes with which a standalone rejects transactions, snapshot reads and change streams.
_UNSUPPORTED_CODES_OF_STANDALONE = frozenset({20, 123, 40573})


def compare_recorded_replies(target: Target, report: Report, name_part: str) -> None:
    """Compare the replies of the server with the recorded replies of MongoDB.

    :param name_part: Compare only the cases whose name contains this text.
    """
    database = target.open_database("answers")
    codes = _UNSUPPORTED_CODES | _UNSUPPORTED_CODES_OF_STANDALONE if target.topology == "single" else _UNSUPPORTED_CODES
    for case in (each for each in cases() if name_part in each.name):
        with report.case(DOCUMENTED_PART, case.name):
            if _version_numbers(target.version) < _version_numbers(case.version):
                raise Skip(f"the recorded reply is of version {case.version}")
            replies = run_case(case, database)
            description = difference(case.expected, replies)
            if description:
                _skip_if_unsupported(replies, codes)
                raise DifferenceError(description)


def _version_numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2]]


def _skip_if_unsupported(reply: object, codes: frozenset[int], owner: str = "server") -> None:
    for code in sorted(codes & _error_codes(reply)):
        raise Skip(f"the {owner} does not support the case (error {code})")


def _error_codes(reply: object) -> set[object]:
    """Return the error codes in a reply, or in a list of replies."""
    match reply:
        case {"code": code}:
            return {code}
        case [*parts]:
            return set().union(*map(_error_codes, parts))
    return set()


def compare_random_calls(target: Target, report: Report, call_count: int, seed: int) -> None:
    """Send random commands to the server and to the simulation, and compare the replies.

    :param call_count: Number of random commands.
    """
    grammar = Grammar(random.Random(seed))
    with simulation() as simulated:
        databases = target.open_database("drawn"), simulated
        for number in range(call_count):
            case = grammar.case("reads")
            fields = {**case, "run": case["run"][:1]}
            with report.case(RANDOM_PART, f"{number}, seed {seed}: {to_line(fields['run'])}"):
                random_case = Case("drawn", fields)
                answers = (run_case(random_case, database)[0] for database in databases)
                replies = (without_documented_differences(fields["run"], each) for each in answers)
                server_reply, simulated_reply = replies
                _skip_if_unsupported(server_reply, _UNSUPPORTED_CODES)
                _skip_if_unsupported(simulated_reply, _UNSUPPORTED_CODES, "simulation")
                if difference(server_reply, simulated_reply):
                    text = f"server reply: {to_line(server_reply)}, simulation reply: {to_line(simulated_reply)}"
                    raise DifferenceError(f"{text}; {to_line(fields)}")

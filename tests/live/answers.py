"""Compare the answers of a server with the recorded ones and with the simulation."""

from __future__ import annotations

import random

from tests.live.report import Differs, Report, Skip
from tests.live.target import Target
from tests.simulation.answers.case import cases, difference, run
from tests.simulation.answers.generator import answer, documents, random_call
from tests.simulation.answers.test_answers import simulation

DOCUMENTED, DRAWN = "documented answers", "random calls"

# CommandNotFound, CommandNotSupported, InvalidPipelineOperator, NotImplemented, an unknown stage: not an answer, but
# none. A server of another age or make has less than the manual.
_UNKNOWN = frozenset({59, 115, 168, 238, 40324})
# Of a standalone server: it has no transactions, snapshots and change streams.
_NOT_ALONE = frozenset({20, 123, 40573})


def documented(target: Target, report: Report, only: str) -> None:
    """Compare the recorded answers with the server's.

    :param only: a part of the names of cases.
    """
    database = target.opened("answers")
    unknown = _UNKNOWN | _NOT_ALONE if target.topology == "single" else _UNKNOWN
    for case in (each for each in cases() if only in each.name):
        with report.case(DOCUMENTED, case.name):
            if _numbers(target.version) < _numbers(case.version):
                raise Skip(f"the answer is one of version {case.version}")
            found = run(case, database)
            described = difference(case.expected, found)
            if described:
                _raise_if_unknown(found, unknown)
                raise Differs(described)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2]]


def _raise_if_unknown(found: object, codes: frozenset[int], whose: str = "server") -> None:
    for code in sorted(codes & _codes(found)):
        raise Skip(f"the {whose} does not have what the case asks for (error {code})")


def _codes(found: object) -> set[object]:
    """Return the codes of the errors in an answer."""
    match found:
        case {"code": code}:
            return {code}
        case [*parts]:
            return set().union(*map(_codes, parts))
    return set()


def drawn(target: Target, report: Report, calls: int, seed: int) -> None:
    """Random calls, asked of the server and of the simulation.

    :param calls: how many.
    """
    chance = random.Random(seed)
    with simulation() as simulated:
        database = target.opened("drawn")
        for number in range(calls):
            stored, call = documents(chance), random_call(chance)
            with report.case(DRAWN, f"{number}, seed {seed}: {call}"):
                there, here = answer(database, stored, call), answer(simulated, stored, call)
                _raise_if_unknown(there, _UNKNOWN)
                _raise_if_unknown(here, _UNKNOWN, "simulation")
                if difference(there, here):
                    raise Differs(f"the server answered {there!r}, the simulation {here!r}; stored: {stored!r}")

"""What a server answers, beside what MongoDB documents, what the simulation answers, and what PyMongo makes of it."""

from __future__ import annotations

import random

from gmongo.errors import OperationFailure
from tests.live.report import Differs, Report, Skip
from tests.live.target import Target
from tests.simulation.semantics import cases
from tests.simulation.semantics.cases import Error, answer, same
from tests.simulation.semantics.generator import documents, random_call, run
from tests.simulation.semantics.listing import CASES, simulation

DOCUMENTED, DRAWN = "documented answers", "random calls"

# CommandNotFound, CommandNotSupported, InvalidPipelineOperator, NotImplemented, an unknown stage: not an answer, but
# none. A server of another age or make has less than the manual.
_UNKNOWN = frozenset({59, 115, 168, 238, 40324})
# Of a standalone server: it has no transactions, snapshots and change streams.
_NOT_ALONE = frozenset({20, 123, 40573})


def documented(target: Target, report: Report, only: str) -> None:
    """The cases of the manual.

    :param only: a part of the names of cases.
    """
    database = target.opened("semantics")
    for case in (each for each in CASES if only in each.name):
        with report.case(DOCUMENTED, case.name):
            try:
                found = answer(case, database)
            except Exception as error:
                if _is_of_the_driver(error):
                    raise
                raise Differs(f"answered so that {error!r}, documented {case.expected!r} ({case.source})") from error
            if not same(found, case.expected):
                _raise_if_unknown(found, _UNKNOWN | _NOT_ALONE if target.topology == "single" else _UNKNOWN)
                raise Differs(f"answered {found!r}, documented {case.expected!r} ({case.source})")


def _is_of_the_driver(error: BaseException) -> bool:
    """Whether an error is neither one of the server's nor one of a case that stumbles over what was answered."""
    if isinstance(error, OperationFailure):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is None or not str(trace.tb_frame.f_globals["__name__"]).startswith(cases.__package__)


def _raise_if_unknown(found: object, codes: frozenset[int], whose: str = "server") -> None:
    for code in sorted(codes & _codes(found)):
        raise Skip(f"the {whose} does not have what the case asks for (error {code})")


def _codes(found: object) -> set[int]:
    """The codes of the errors in an answer; some cases note an error as its code and the name of that."""
    match found:
        case Error(code):
            return {code}
        case [int(code), str()]:
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
                there, here = run(database, stored, call), run(simulated, stored, call)
                _raise_if_unknown(there, _UNKNOWN)
                _raise_if_unknown(here, _UNKNOWN, "simulation")
                if not same(there, here):
                    raise Differs(f"the server answered {there!r}, the simulation {here!r}; stored: {stored!r}")

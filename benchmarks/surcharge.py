"""What a circumstance adds: gmongo beside itself in the plain case, and over TLS beside a floor over TLS."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.processes import Measurement
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings

TABLE = "surcharge"
GREENLETS = 10
OPERATIONS = ("find_one", "insert_one", "update_one")
#: What each circumstance is divided by: gmongo without it, or the floor with it.
PLAIN, FLOOR = "gmongo, plain", "floor"
UNDER = {"replica_set": PLAIN, "timeout": PLAIN, "stable_api": PLAIN, "tls": FLOOR}


def name(operation: str, circumstance: str) -> str:
    """Of a row."""
    return f"{operation}+{circumstance}, surcharge"


def rows(settings: Settings) -> Iterator[Row]:
    """Measure each operation plainly and under each circumstance, all in turns."""
    if TABLE not in settings.only or "gmongo" not in settings.contenders:
        return
    for operation in OPERATIONS:
        settings.tell(f"{operation}, what circumstances add")
        plain = Measurement("gmongo", operation, GREENLETS, settings.operations)
        turns = [plain, *(plain._replace(circumstance=each) for each in UNDER)]
        turns += [turn._replace(contender="floor") for turn in turns if turn.circumstance == "tls"]
        with settings.workers() as workers:
            results, failures = take_turns(turns, settings.rounds, workers.run)
        costs = {turn: [each.microseconds for each in found] for turn, found in results.items()}
        for circumstance, under in UNDER.items():
            over = plain._replace(circumstance=circumstance)
            base = plain if under == PLAIN else over._replace(contender="floor")
            numbers = {"gmongo": costs[over], under: costs[base]}
            failed = {title: failures[turn] for title, turn in (("gmongo", over), (under, base)) if turn in failures}
            yield Row(name(operation, circumstance), GREENLETS, "µs", numbers, failed)

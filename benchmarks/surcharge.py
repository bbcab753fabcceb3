"""The table of additional costs of gmongo in a variant, relative to gmongo in the plain case.

The cost of TLS is relative to a baseline with TLS.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.processes import Measurement
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings

TABLE = "surcharge"
GREENLETS = 10
OPERATIONS = ("find_one", "insert_one", "update_one")
#: The denominator of each variant: gmongo in the plain case, or the baseline in the same variant.
PLAIN, BASELINE = "gmongo, plain", "floor"
UNDER = {"replica_set": PLAIN, "timeout": PLAIN, "stable_api": PLAIN, "tls": BASELINE}


def name(operation: str, variant: str) -> str:
    """Return the name of a row."""
    return f"{operation}+{variant}, surcharge"


def rows(settings: Settings) -> Iterator[Row]:
    """Measure each operation in the plain case and in each variant, in turns."""
    if TABLE not in settings.only or "gmongo" not in settings.contenders:
        return
    for operation in OPERATIONS:
        settings.show_progress(f"{operation}, additional cost of variants")
        plain = Measurement("gmongo", operation, GREENLETS, settings.operations)
        pairs = {variant: _ratio_terms(plain, variant) for variant in UNDER}
        turns = list(dict.fromkeys(turn for pair in pairs.values() for turn in pair.values()))
        with settings.workers() as workers:
            results, failures = take_turns(turns, settings.rounds, workers.run)
        for variant, pair in pairs.items():
            numbers = {title: [each.microseconds for each in results[turn]] for title, turn in pair.items()}
            failed = {title: failures[turn] for title, turn in pair.items() if turn in failures}
            yield Row(name(operation, variant), GREENLETS, "µs", numbers, failed)


def _ratio_terms(plain: Measurement, variant: str) -> dict[str, Measurement]:
    """Return the measurement of gmongo in a variant, and the measurement that is the denominator of the ratio."""
    measured, denominator = plain._replace(variant=variant), UNDER[variant]
    return {"gmongo": measured, denominator: plain if denominator == PLAIN else measured._replace(contender=BASELINE)}

"""``python -m tests.histories`` runs random histories, and prints the violations.

Two histories with equal topology and equal seed are equal.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import traceback
from collections import Counter
from types import FrameType

from tests.histories.history import TOPOLOGIES, History

_TIME_LIMIT = 60  # Time limit of a history, in seconds of real time.


def main(arguments: list[str]) -> int:
    """Run histories. Return the number of violations as exit status, at most 100."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--topology", choices=TOPOLOGIES, help="topology of the deployment; by default, all topologies")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="seed of the first history")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="number of histories of each topology")
    parser.add_argument("--minutes", type=float, help="time limit of each topology; by default, no limit")
    parser.add_argument("--verbose", action="store_true", help="print the faults and the digest of each history")
    options = parser.parse_args(arguments)
    violation_count = 0
    for topology in [options.topology] if options.topology else TOPOLOGIES:
        violation_count += _run(topology, options)
    return min(violation_count, 100)


def _run(topology: str, options: argparse.Namespace) -> int:
    outcomes: Counter[str] = Counter()
    start_time, cpu_time_before = time.monotonic(), time.process_time()
    violation_count = seed = 0
    for seed in range(options.first, options.first + options.count):
        history = History(topology, seed)
        _limit_real_time(history)
        try:
            history.run()
        except Exception:
            violation_count += 1
            print(f"{topology} {seed} violates an invariant:\n{traceback.format_exc(limit=-4)}")
            print("\n".join(history.faults), flush=True)
        else:
            if options.verbose:
                print("\n".join([f"{topology} {seed} {history.digest}", *history.faults]), flush=True)
        outcomes += history.outcomes
        if options.minutes and time.monotonic() - start_time > options.minutes * 60:
            break
    signal.alarm(0)
    history_count, cpu_seconds = seed - options.first + 1, time.process_time() - cpu_time_before
    print(
        f"{topology}: {history_count} histories from seed {options.first}, {violation_count} violations, "
        f"{history_count / cpu_seconds * 60:.0f} per minute of processor time, {sum(outcomes.values())} operations"
    )
    print("  " + ", ".join(f"{name} {number}" for name, number in outcomes.most_common()), flush=True)
    return violation_count


def _limit_real_time(history: History) -> None:
    """End the process if the history needs more than :data:`_TIME_LIMIT` seconds of real time.

    A virtual timeout cannot detect a greenlet that never waits, because virtual time then does not
    advance.
    """

    def abort_history(_signal: int, frame: FrameType | None) -> None:
        where = "".join(traceback.format_stack(frame, 12))
        print(f"{history.topology} {history.seed} does not end:\n{where}", *history.faults, sep="\n", flush=True)
        os._exit(1)

    signal.signal(signal.SIGALRM, abort_history)
    signal.alarm(_TIME_LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

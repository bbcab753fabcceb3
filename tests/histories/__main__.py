"""``python -m tests.histories``: many histories of failures, each of which its topology and its seed repeat."""

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

_LONGEST = 60  # seconds of real time that a history may take; most take a tenth of one


def main(arguments: list[str]) -> int:
    """Let histories happen; how many of them had what must not happen, at most 100."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--topology", choices=TOPOLOGIES, help="of the histories; each in turn by default")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="how many of each topology")
    parser.add_argument("--minutes", type=float, help="how long each topology may take; without limit by default")
    parser.add_argument("--tell", action="store_true", help="tell of each history what went wrong, and its digest")
    given = parser.parse_args(arguments)
    violations = 0
    for topology in [given.topology] if given.topology else TOPOLOGIES:
        violations += _run(topology, given)
    return min(violations, 100)


def _run(topology: str, given: argparse.Namespace) -> int:
    outcomes: Counter[str] = Counter()
    began, processor = time.monotonic(), time.process_time()
    violations = seed = 0
    for seed in range(given.first, given.first + given.count):
        history = History(topology, seed)
        _limit(history)
        try:
            history.run()
        except Exception:
            violations += 1
            print(f"{topology} {seed} must not happen:\n{traceback.format_exc(limit=-4)}")
            print("\n".join(history.told), flush=True)
        else:
            if given.tell:
                print("\n".join([f"{topology} {seed} {history.digest}", *history.told]), flush=True)
        outcomes += history.outcomes
        if given.minutes and time.monotonic() - began > given.minutes * 60:
            break
    signal.alarm(0)
    count, used = seed - given.first + 1, time.process_time() - processor
    print(
        f"{topology}: {count} histories from seed {given.first} on, {violations} violations, "
        f"{count / used * 60:.0f} in a minute of processor time, {sum(outcomes.values())} operations"
    )
    print("  " + ", ".join(f"{name} {number}" for name, number in outcomes.most_common()), flush=True)
    return violations


def _limit(history: History) -> None:
    """End the process if the history does not end. While something happens all the time, virtual time does not pass,
    and no limit in it strikes.
    """

    def give_up(_signal: int, frame: FrameType | None) -> None:
        where = "".join(traceback.format_stack(frame, 12))
        print(f"{history.topology} {history.seed} does not end:\n{where}", *history.told, sep="\n", flush=True)
        os._exit(1)

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_LONGEST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

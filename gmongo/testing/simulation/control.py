"""How the process that started a deployment's process lets its members fail: lines of JSON on a socket."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gmongo.testing.simulation.member import Member

FAULTS = frozenset(
    {"delay", "drop_after", "freeze", "garbage", "heal", "kill", "partition", "restart", "step_down", "thaw"}
)


def serve_control(sock: Any, members: Sequence[Member]) -> None:
    """Do what the lines say, and answer each with a line, until the socket is closed."""
    with sock.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            print(json.dumps({"problem": _do(json.loads(line), members)}), file=lines, flush=True)


def ask_control(lines: Any, member: int, fault: str, arguments: Sequence[Any]) -> str | None:
    """Send one line; what went wrong, or None."""
    print(json.dumps([member, fault, list(arguments)]), file=lines, flush=True)
    answer: str | None = json.loads(lines.readline())["problem"]
    return answer


def _do(order: Any, members: Sequence[Member]) -> str | None:
    number, fault, arguments = order
    if not 0 <= number < len(members):
        return f"there is no member {number}, only 0 to {len(members) - 1}"
    if fault not in FAULTS:
        return f"{fault!r} is not one of {sorted(FAULTS)}"
    try:
        getattr(members[number], fault)(*arguments)
    except (TypeError, ValueError, OSError) as problem:
        return str(problem)
    return None

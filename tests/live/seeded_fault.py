"""``python -m tests.live.seeded_fault`` starts a simulated deployment with a fault, which
``tests.live`` must detect.

The reply to ``distinct`` omits the first value. Apart from this fault, the program behaves like
``python -m gmongo.testing``.
"""

from __future__ import annotations

import dataclasses
import sys

from gmongo.testing.__main__ import main
from gmongo.testing.store import dispatch
from gmongo.testing.store.context import CommandContext
from gmongo.testing.store.data import Document

_DISTINCT = dispatch.COMMANDS["distinct"]


def _distinct_without_first_value(context: CommandContext) -> Document:
    reply = _DISTINCT.run(context)
    return {**reply, "values": reply["values"][1:]}


if __name__ == "__main__":
    dispatch.COMMANDS = {
        **dispatch.COMMANDS,
        "distinct": dataclasses.replace(_DISTINCT, run=_distinct_without_first_value),
    }
    sys.exit(main())

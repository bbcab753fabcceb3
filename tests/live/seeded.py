"""``python -m tests.live.seeded``: a simulated deployment in a process of its own that answers one thing otherwise.

``distinct`` leaves out the first value. The rest is as with ``python -m gmongo.testing``.
"""

from __future__ import annotations

import dataclasses
import sys

from gmongo.testing.__main__ import main
from gmongo.testing.store import dispatch
from gmongo.testing.store.context import Context
from gmongo.testing.store.data import Document

_TRUE = dispatch.COMMANDS["distinct"]


def _short(context: Context) -> Document:
    reply = _TRUE.run(context)
    return {**reply, "values": reply["values"][1:]}


if __name__ == "__main__":
    dispatch.COMMANDS = {**dispatch.COMMANDS, "distinct": dataclasses.replace(_TRUE, run=_short)}
    sys.exit(main())

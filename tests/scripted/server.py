"""All that tests need of the scripted servers."""

from __future__ import annotations

from tests.scripted.faults import Fault, cut, forged, garbled, held, silent
from tests.scripted.replica_set import ScriptedReplicaSet
from tests.scripted.single import ScriptedServer, cursor_reply, eventually

__all__ = [
    "Fault",
    "ScriptedReplicaSet",
    "ScriptedServer",
    "cursor_reply",
    "cut",
    "eventually",
    "forged",
    "garbled",
    "held",
    "silent",
]

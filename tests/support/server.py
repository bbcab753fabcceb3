"""Export the names of ``faults``, ``replica_set`` and ``scripted_server`` that tests use."""

from __future__ import annotations

from tests.support.faults import Fault, cut, held, malformed, silent, with_false_header
from tests.support.replica_set import ScriptedReplicaSet
from tests.support.scripted_server import ScriptedServer, cursor_reply

__all__ = [
    "Fault",
    "ScriptedReplicaSet",
    "ScriptedServer",
    "cursor_reply",
    "cut",
    "held",
    "malformed",
    "silent",
    "with_false_header",
]

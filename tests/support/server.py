"""Export the names of ``faults``, ``replica_set`` and ``scripted_server`` that tests use."""

from __future__ import annotations

from tests.support.faults import Fault, cut_reply, hold_reply, send_malformed_reply, send_no_reply, with_false_header
from tests.support.replica_set import ScriptedReplicaSet
from tests.support.scripted_server import ScriptedServer, cursor_reply

__all__ = [
    "Fault",
    "ScriptedReplicaSet",
    "ScriptedServer",
    "cursor_reply",
    "cut_reply",
    "hold_reply",
    "send_malformed_reply",
    "send_no_reply",
    "with_false_header",
]

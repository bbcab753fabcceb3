"""Each module has a documented logger name (docs/events.md). Applications use the name to set levels and handlers."""

from __future__ import annotations

import logging

from gmongo import _background, _tls, event_loggers
from gmongo._telemetry import slow
from gmongo.events import delivery, log
from gmongo.gridfs import grid_in
from gmongo.monitoring import listeners
from gmongo.options import srv
from gmongo.sdam import srv_monitor
from gmongo.wire import tls

LOGGERS = {
    _background: {"_log": "background"},
    _tls: {"_log": "connection"},
    delivery: {"_log": "events"},
    grid_in: {"_log": "background"},
    event_loggers: {"_log": "event_loggers"},
    listeners: {"_log": "monitoring"},
    log: {
        "connection_log": "connection",
        "command_log": "command",
        "topology_log": "topology",
        "server_selection_log": "serverSelection",
        "encryption_log": "encryption",
        "silence": "silence",
    },
    slow: {"slow_log": "slow"},
    srv: {"_log": "topology"},
    srv_monitor: {"_log": "topology"},
    tls: {"ocsp_log": "ocsp"},
}


def test_loggers_of_modules_have_documented_names() -> None:
    for module, expected in LOGGERS.items():
        own = {name: each for name, each in vars(module).items() if isinstance(each, logging.Logger)}
        assert {name: own[name].name for name in expected} == {name: f"gmongo.{it}" for name, it in expected.items()}
        for name in expected:
            if name != "silence":
                assert own[name] is logging.getLogger(own[name].name)
    assert log.silence.disabled

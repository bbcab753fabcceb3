"""Each module has a documented logger name (docs/events.md). Applications use the name to set levels and handlers."""

from __future__ import annotations

import importlib
import logging

from gmongo.events import log
from tests.support.cases import with_cases


@with_cases
def test_logger_of_module_has_documented_name(module: str, variable: str, name: str) -> None:
    logger = vars(importlib.import_module(module))[variable]
    assert logger is logging.getLogger(f"gmongo.{name}")


def test_logger_of_silent_clients_is_disabled() -> None:
    assert log.silence.name == "gmongo.silence" and log.silence.disabled

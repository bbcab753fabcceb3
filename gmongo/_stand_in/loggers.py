"""gmongo's loggers under PyMongo's names."""

from __future__ import annotations

import logging
from types import ModuleType


def adopt_loggers(module: ModuleType) -> None:
    """Let a module of gmongo's log to PyMongo's loggers: levels, handlers and filters that an application has set for
    ``pymongo`` apply, and what ``logging.config`` does to it. Clients that exist keep those they have."""
    for name, value in list(vars(module).items()):
        if isinstance(value, logging.Logger) and value.name.partition(".")[0] == "gmongo":
            setattr(module, name, logging.getLogger(value.name.replace("gmongo", "pymongo", 1)))

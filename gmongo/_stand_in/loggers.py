"""Replacement of gmongo's loggers by loggers with PyMongo's names."""

from __future__ import annotations

import logging
from types import ModuleType


def adopt_loggers(module: ModuleType) -> None:
    """Replace the loggers of a gmongo module by PyMongo's loggers, with the application's levels and handlers."""
    for name, value in list(vars(module).items()):
        if isinstance(value, logging.Logger) and value.name.partition(".")[0] == "gmongo":
            setattr(module, name, logging.getLogger(value.name.replace("gmongo", "pymongo", 1)))

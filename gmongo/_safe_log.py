"""Logging that does no harm: a log handler that raises must end neither an operation nor a monitor."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any


def safely(log: Callable[..., None], *arguments: Any, **options: Any) -> None:
    """Call a logger's method. What a handler raises is printed if ``logging.raiseExceptions`` asks for that, as
    handlers do with failures of their own. What is thrown into the greenlet from outside goes through.

    :param log: the method, such as ``logger.warning``.
    """
    try:
        log(*arguments, **options)
    except Exception:
        if logging.raiseExceptions:
            traceback.print_exc()

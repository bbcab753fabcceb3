"""Logging that suppresses exceptions of log handlers, and escaping of texts from a server."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable


def printable(text: str) -> str:
    """Escape unprintable characters: control characters, line ends, surrogates and others."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def safely(log: Callable[..., None], *arguments: object, **options: object) -> None:
    """Call a logger's method. Suppress an exception of a handler, but not GreenletExit and Timeout.

    If ``logging.raiseExceptions`` is set, print the exception, as log handlers do.
    """
    try:
        log(*arguments, **options)
    except Exception:
        if logging.raiseExceptions:
            traceback.print_exc()

"""Safe logging.

An exception of a log handler must not end an operation or a monitor. Text from a server must not control a terminal or
imitate another log line.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable


def printable(text: str) -> str:
    """Escape unprintable characters: control characters, line ends, marks of the writing direction, surrogates."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def safely(log: Callable[..., None], *arguments: object, **options: object) -> None:
    """Call a logger's method.

    Print an exception of a handler if ``logging.raiseExceptions`` is set, as handlers do. Exceptions thrown into the
    greenlet propagate.

    :param log: the method, such as ``logger.warning``.
    """
    try:
        log(*arguments, **options)
    except Exception:
        if logging.raiseExceptions:
            traceback.print_exc()

"""Safe logging.

An exception of a log handler must not end an operation or a monitor. Text from a server must not control the terminal
that shows the log, and must not look like another log line.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable


def printable(text: str) -> str:
    """Escape the unprintable characters of a text, such as control characters, line ends and surrogates."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def safely(log: Callable[..., None], *arguments: object, **options: object) -> None:
    """Call a method of a logger, and suppress an exception of a log handler.

    If ``logging.raiseExceptions`` is set, print the exception, as log handlers do. GreenletExit and other exceptions
    that are no subclass of Exception propagate.

    :param log: the method of the logger, such as ``logger.warning``.
    :param arguments: the positional arguments of the method.
    :param options: the keyword arguments of the method.
    """
    try:
        log(*arguments, **options)
    except Exception:
        if logging.raiseExceptions:
            traceback.print_exc()

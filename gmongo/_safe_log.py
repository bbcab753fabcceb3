"""Logging that does no harm: a log handler that raises must end neither an operation nor a monitor, and what a server
says must not command a terminal, nor begin a line that looks like another message.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable


def printable(text: str) -> str:
    """A text in which what cannot be printed is escaped, as ``repr`` does it: control characters and line ends, marks
    that turn the direction of writing, halves of characters.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def safely(log: Callable[..., None], *arguments: object, **options: object) -> None:
    """Call a logger's method. What a handler raises is printed if ``logging.raiseExceptions`` asks for that, as
    handlers do with failures of their own. What is thrown into the greenlet from outside goes through.

    :param log: the method, such as ``logger.warning``.
    """
    try:
        log(*arguments, **options)
    except Exception:
        if logging.raiseExceptions:
            traceback.print_exc()

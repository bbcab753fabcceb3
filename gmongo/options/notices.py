"""Warnings about options, attributed to the application's line."""

from __future__ import annotations

import sys
import warnings


def notice(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn with the first caller outside of gmongo as the location.

    :param kind: the warning class.
    """
    warnings.warn(message, kind, stacklevel=_levels_to_the_application())


def _levels_to_the_application() -> int:
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gmongo."):
        frame, level = frame.f_back, level + 1
    return level

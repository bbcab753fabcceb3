"""Warnings about options, with the application's line as the location of the warning."""

from __future__ import annotations

import sys
import warnings


def notice(message: str, category: type[Warning] = UserWarning) -> None:
    """Show a warning whose location is the line of the first caller outside of gmongo."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gmongo."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)

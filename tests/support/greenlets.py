"""Search for the living greenlets of this process."""

from __future__ import annotations

import gc

import gevent


def living_greenlets(text: str = "") -> list[gevent.Greenlet]:
    """Return the living greenlets whose function has `text` in its ``repr``."""
    # The code does not call `isinstance`, which raises ReferenceError for a weak proxy whose object
    # no longer exists.
    greenlets = [each for each in gc.get_objects() if issubclass(type(each), gevent.Greenlet)]
    return [each for each in greenlets if not each.dead and text in repr(getattr(each, "_run", None))]

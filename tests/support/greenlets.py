"""Search for the living greenlets of this process."""

from __future__ import annotations

import gc

import gevent


def living_greenlets(part: str = "") -> list[gevent.Greenlet]:
    """Return the living greenlets whose function has `part` in its ``repr``."""
    # The code does not call `isinstance`, which raises ReferenceError for a weak proxy whose object no
    # longer exists.
    greenlets = [each for each in gc.get_objects() if issubclass(type(each), gevent.Greenlet)]
    return [each for each in greenlets if not each.dead and part in repr(getattr(each, "_run", None))]

"""Living greenlets of this process."""

from __future__ import annotations

import gc

import gevent


def living_greenlets(part: str = "") -> list[gevent.Greenlet]:
    """Return the living greenlets with `part` in the representation of their function."""
    # `isinstance` would raise an error for a weak proxy of a dead object.
    greenlets = [each for each in gc.get_objects() if issubclass(type(each), gevent.Greenlet)]
    return [each for each in greenlets if not each.dead and part in repr(getattr(each, "_run", None))]

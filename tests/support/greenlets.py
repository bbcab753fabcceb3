"""Which greenlets are alive in this process."""

from __future__ import annotations

import gc

import gevent


def living(part: str = "") -> list[gevent.Greenlet]:
    """The greenlets that run or wait to run something whose description contains `part`.

    The type is asked, not ``isinstance``, which asks a weak proxy for the class of what it stands for, and fails
    when that is gone. Libraries leave such proxies among the objects of a process.
    """
    found = [each for each in gc.get_objects() if issubclass(type(each), gevent.Greenlet)]
    return [each for each in found if not each.dead and part in repr(getattr(each, "_run", None))]

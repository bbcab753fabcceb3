"""Limit garbage collections to the objects of the current test."""

from __future__ import annotations

import gc


def freeze_living_objects() -> None:
    """Exclude the objects that exist now from later garbage collections and from
    ``gc.get_objects()``.

    After pytest has collected the tests, the process has two million objects. A garbage collection
    of all objects would take half a second.
    """
    gc.unfreeze()
    # The monitors of an unreferenced client end only if the garbage collector removes the client.
    gc.collect()
    gc.freeze()

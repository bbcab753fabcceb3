"""What collections of garbage look at."""

from __future__ import annotations

import gc


def leave_out_what_lives() -> None:
    """Later collections, and ``gc.get_objects()``, leave out what lives now, such as the two million objects of the
    collected tests, of which each look at them takes half a second.

    What was left out before and is garbage by now is collected first: a client in a cycle keeps its monitors.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()

"""Exclusive use of a file by one greenlet."""

from __future__ import annotations

from gevent import getcurrent
from greenlet import greenlet

from gmongo.cmap.checked_out_report import greenlet_name
from gmongo.errors import InvalidOperation


class ExclusiveUse:
    """Context manager that refuses a second greenlet while a first greenlet is in the block. Blocks may be nested."""

    __slots__ = ("_depth", "_kind", "_user")

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._user: greenlet | None = None
        self._depth = 0

    def __enter__(self) -> None:
        user = getcurrent()
        if self._user is not None and self._user is not user:
            raise InvalidOperation(
                f"the {self._kind} is in use by greenlet {greenlet_name(self._user)}, "
                f"and greenlet {greenlet_name(user)} must not use it at the same time"
            )
        self._user = user
        self._depth += 1

    def __exit__(self, *_exception: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._user = None

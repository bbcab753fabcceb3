"""Base class of all events."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True, eq=False, repr=False)
class Event:
    """Plain data. The repr shows the names of the fields.

    All classes share this repr: a generated repr for each class would double the import time.
    """

    def __repr__(self) -> str:
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

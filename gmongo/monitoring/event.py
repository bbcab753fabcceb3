"""Base class of all events."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True, eq=False, repr=False)
class Event:
    """Base class of events, with a common ``repr``. A generated ``repr`` in each class would double the import time."""

    def __repr__(self) -> str:
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

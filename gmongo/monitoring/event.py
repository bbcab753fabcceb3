"""Base class of all events."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True, eq=False, repr=False)
class Event:
    """Base class of events, with a ``repr`` that shows the names and values of the fields.

    The dataclasses do not generate a ``repr`` method for each class, because this would double the import time.
    """

    def __repr__(self) -> str:
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

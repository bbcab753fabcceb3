"""What all events have in common."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True, eq=False, repr=False)
class Event:
    """Plain data, shown with the names of its fields.

    One repr for all classes: a generated one for each would double the time the import takes.
    """

    def __repr__(self) -> str:
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

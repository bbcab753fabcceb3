"""What must be the same in both drivers: values with their types, classes by name, errors with all they carry."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import bson
from bson.raw_bson import RawBSONDocument

_DRIVERS = ("pymongo", "gridfs", "gmongo")
# What each run has anew.
_VOLATILE = frozenset({"$clusterTime", "operationTime", "lsid", "electionId", "connectionId", "localTime", "opTime"})
# In messages: the number of a transaction, and what a server calls a build of an index or a collection.
_ANEW = re.compile(r"(?<=number )\d+|(?<=number is )\d+|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_NUMBERED = frozenset({"getMore", "cursors", "cursor_id"})
_FIXED_BEFORE = 2026  # the rows have earlier dates, and what is made while they are played has later ones
_YEAR_2000 = 946_684_800


class Portrait:
    """Draws values; made anew for each run, as IDs are told apart by the order in which they are met."""

    def __init__(self) -> None:
        self._ids: dict[Any, str] = {}

    def _known(self, value: Any) -> str:
        return self._ids.setdefault(value, f"{type(value).__name__} {len(self._ids)}")

    def of(self, value: Any, depth: int = 0) -> Any:
        """A value as nested tuples of strings and plain values."""
        kind = type(value)
        name = kind.__name__
        if depth > 8:
            return "..."
        if kind is str:
            return name, _ANEW.sub("N", value)
        if value is None or kind in (bool, int, bytes):
            return (name, value) if kind is not bytes or not value else (name, self._of_bytes(value))
        if kind is float:
            return name, repr(value)
        if isinstance(value, bson.ObjectId) or (isinstance(value, bson.Binary) and _is_random(value)):
            return self._known(value)
        if isinstance(value, RawBSONDocument):
            return name, self.of(bson.decode(value.raw), depth + 1)
        if isinstance(value, Mapping):
            return "dict" if name.startswith("_") else name, tuple(
                (key, "an id" if key in _NUMBERED else self.of(item, depth + 1))
                for key, item in value.items()
                if key not in _VOLATILE
            )
        if isinstance(value, (list, tuple)):
            return name, tuple(self.of(item, depth + 1) for item in value)
        if isinstance(value, (set, frozenset)):
            return name, tuple(sorted(repr(self.of(item, depth + 1)) for item in value))
        if isinstance(value, BaseException):
            return self.of_error(value, depth)
        if isinstance(value, type):
            return "class", value.__name__
        if isinstance(value, bson.Timestamp):
            return (name, str(value)) if value.time < _YEAR_2000 else name  # those of clocks differ
        if isinstance(value, datetime.datetime):
            return name, str(value) if value.year < _FIXED_BEFORE else "now"
        if kind.__module__.partition(".")[0] in _DRIVERS:
            return self._of_drivers_own(value, depth)
        if isinstance(value, (int, float, str)):  # Int64, IntEnum, ...
            return name, str(value)
        return name, _without_addresses(repr(value))

    def _of_bytes(self, value: bytes) -> Any:
        """Raw batches are documents, whose IDs differ."""
        try:
            return self.of(bson.decode_all(value), 1)
        except bson.errors.BSONError:
            return value

    def _of_drivers_own(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if isinstance(getattr(kind, "to_list", None), type(Portrait.of)):
            return kind.__name__
        if kind.__name__ == "MongoClient" or kind.__name__.endswith(("One", "Many")):
            return kind.__name__
        if kind.__name__ in ("Database", "Collection"):
            return kind.__name__, value.name
        names = [each for each in dir(kind) if not each.startswith("_") and not callable(getattr(kind, each))]
        return Own(kind.__name__, tuple((each, self.attribute(value, each, depth + 1)) for each in names))

    def attribute(self, value: Any, name: str, depth: int = 0) -> Any:
        """An attribute, or what reading it raises."""
        try:
            return self.of(getattr(value, name), depth)
        except Exception as error:
            return type(error).__name__

    def of_error(self, error: BaseException, depth: int = 0) -> Raised:
        """An error: its class, and what a caller may ask it for; of its text, what the server said."""
        kind = type(error)
        classes = tuple(each.__name__ for each in kind.__mro__)
        if kind.__module__.partition(".")[0] not in _DRIVERS:
            return Raised(classes, (), ())
        names = {*dir(error), *vars(error)} - set(dir(BaseException))
        public = sorted(name for name in names if not name.startswith("_"))
        known = [
            (each, self.attribute(error, each, depth + 1)) for each in public if not callable(getattr(error, each))
        ]
        return Raised(classes, tuple(known), tuple(sorted(getattr(error, "_error_labels", ()))))


class Own(NamedTuple):
    """An object of the drivers' own: the name of its class, and its attributes."""

    kind: str
    attributes: tuple[Any, ...]


class Raised(NamedTuple):
    """An error: the names of its classes, its attributes, and its labels."""

    classes: tuple[str, ...]
    attributes: tuple[Any, ...]
    labels: tuple[str, ...]


def same(theirs: Any, ours: Any, accept: Callable[[Any, Any], bool] = lambda theirs, ours: False) -> bool:
    """Whether two portraits are equal, but for what a caller cannot tell.

    gmongo may raise a subclass, which code that catches PyMongo's class catches, and its errors may tell more.

    :param accept: says of a pair of parts that differ whether that is meant.
    """
    if isinstance(theirs, Raised) and isinstance(ours, Raised) and theirs.classes[0] in ours.classes:
        alike = _has_all(theirs.attributes, ours.attributes, accept) and theirs.labels == ours.labels
        return alike or accept(theirs, ours)
    if isinstance(theirs, Own) and isinstance(ours, Own) and theirs.kind == ours.kind:
        return _has_all(theirs.attributes, ours.attributes, accept) or accept(theirs, ours)
    if (
        isinstance(theirs, (tuple, list))
        and isinstance(ours, (tuple, list))
        and len(theirs) == len(ours)
        and not isinstance(theirs, Raised)
        and all(same(one, other, accept) for one, other in zip(theirs, ours, strict=True))
    ):
        return True
    return bool(theirs == ours) or accept(theirs, ours)


def _has_all(theirs: tuple[Any, ...], ours: tuple[Any, ...], accept: Callable[[Any, Any], bool]) -> bool:
    """Whether what PyMongo's object has, gmongo's has, too."""
    has = dict(ours)
    return all(name in has and same(value, has[name], accept) for name, value in theirs)


def _is_random(value: bson.Binary) -> bool:
    """Whether it is a UUID that a server made up, of version 4; those of the table are small numbers."""
    return value.subtype == 4 and value[6] >> 4 == 4


def _without_addresses(text: str) -> str:
    return re.sub(r"\b(pymongo|gmongo)\b", "driver", re.sub(r" at 0x[0-9a-f]+|(?<=127\.0\.0\.1:)\d+", "", text))

"""Convert values, objects and errors of gmongo and PyMongo to a form that can be compared."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import bson
from bson.raw_bson import RawBSONDocument

_DRIVER_PACKAGES = ("pymongo", "gridfs", "gmongo")
# Document fields with values that differ in each run.
_VOLATILE_FIELDS = frozenset(
    {"$clusterTime", "operationTime", "lsid", "electionId", "connectionId", "localTime", "opTime"}
)
# Parts of error messages that differ in each run: transaction numbers, and UUIDs of index builds or
# collections.
_VARYING_PARTS_REGEX = re.compile(r"(?<=number )\d+|(?<=number is )\d+|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_CURSOR_ID_FIELDS = frozenset({"getMore", "cursors", "cursor_id"})
# The tested calls contain only dates before this year. Later dates come from a clock.
_FIRST_CLOCK_YEAR = 2026
_YEAR_2000 = 946_684_800


class ComparableValues:
    """Converter of the values of one call. Numbers replace generated IDs, because these IDs vary."""

    def __init__(self) -> None:
        self._ids: dict[Any, str] = {}

    def _numbered_id(self, value: Any) -> str:
        return self._ids.setdefault(value, f"{type(value).__name__} {len(self._ids)}")

    def convert(self, value: Any, depth: int = 0) -> Any:
        """Return a value in comparable form: nested tuples that contain strings and plain values."""
        kind = type(value)
        name = kind.__name__
        if depth > 8:
            return "..."
        if kind is str:
            return name, _VARYING_PARTS_REGEX.sub("N", value)
        if value is None or kind in (bool, int, bytes):
            return (name, value) if kind is not bytes or not value else (name, self._convert_bytes(value))
        if kind is float:
            return name, repr(value)
        if isinstance(value, bson.ObjectId) or (isinstance(value, bson.Binary) and _is_random(value)):
            return self._numbered_id(value)
        if isinstance(value, RawBSONDocument):
            return name, self.convert(bson.decode(value.raw), depth + 1)
        if isinstance(value, Mapping):
            return "dict" if name.startswith("_") else name, tuple(
                (key, "an id" if key in _CURSOR_ID_FIELDS else self.convert(item, depth + 1))
                for key, item in value.items()
                if key not in _VOLATILE_FIELDS
            )
        if isinstance(value, (list, tuple)):
            return name, tuple(self.convert(item, depth + 1) for item in value)
        if isinstance(value, (set, frozenset)):
            return name, tuple(sorted(repr(self.convert(item, depth + 1)) for item in value))
        if isinstance(value, BaseException):
            return self.convert_error(value, depth)
        if isinstance(value, type):
            return "class", value.__name__
        if isinstance(value, bson.Timestamp):
            # A timestamp after the year 2000 comes from a clock, and differs in each run.
            return (name, str(value)) if value.time < _YEAR_2000 else name
        if isinstance(value, datetime.datetime):
            return name, str(value) if value.year < _FIRST_CLOCK_YEAR else "now"
        if kind.__module__.partition(".")[0] in _DRIVER_PACKAGES:
            return self._convert_driver_object(value, depth)
        if isinstance(value, (int, float, str)):  # for example Int64 and IntEnum
            return name, str(value)
        return name, _without_addresses(repr(value))

    def _convert_bytes(self, value: bytes) -> Any:
        """If the bytes are a raw batch, return its documents in comparable form.

        Otherwise return the bytes.
        """
        try:
            return self.convert(bson.decode_all(value), 1)
        except bson.errors.BSONError:
            return value

    def _convert_driver_object(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if isinstance(getattr(kind, "to_list", None), type(ComparableValues.convert)):
            return kind.__name__
        if kind.__name__ == "MongoClient" or kind.__name__.endswith(("One", "Many")):
            return kind.__name__
        if kind.__name__ in ("Database", "Collection"):
            return kind.__name__, value.name
        names = [each for each in dir(kind) if not each.startswith("_") and not callable(getattr(kind, each))]
        return DriverObject(
            kind.__name__,
            tuple((each, self.read_attribute(value, each, depth + 1)) for each in names),
        )

    def read_attribute(self, value: Any, name: str, depth: int = 0) -> Any:
        """Return the value of an attribute in comparable form, or the class name of the error that
        the attribute raises.
        """
        try:
            return self.convert(getattr(value, name), depth)
        except Exception as error:
            return type(error).__name__

    def convert_error(self, error: BaseException, depth: int = 0) -> RaisedError:
        """Return an error in comparable form: its classes, public attributes and labels, and True if it has a text."""
        kind = type(error)
        classes = tuple(each.__name__ for each in kind.__mro__)
        if kind.__module__.partition(".")[0] not in _DRIVER_PACKAGES:
            return RaisedError(classes, (), (), bool(str(error)))
        names = {*dir(error), *vars(error)} - set(dir(BaseException))
        public = sorted(name for name in names if not name.startswith("_"))
        attributes = [
            (each, self.read_attribute(error, each, depth + 1)) for each in public if not callable(getattr(error, each))
        ]
        labels = tuple(sorted(getattr(error, "_error_labels", ())))
        return RaisedError(classes, tuple(attributes), labels, bool(str(error)))


class DriverObject(NamedTuple):
    """An object of a driver in comparable form: the name of its class, and its attributes."""

    kind: str
    attributes: tuple[Any, ...]


class RaisedError(NamedTuple):
    """An error in comparable form: its classes, attributes and labels, and True if its text is not empty."""

    classes: tuple[str, ...]
    attributes: tuple[Any, ...]
    labels: tuple[str, ...]
    has_text: bool


def are_equal(theirs: Any, ours: Any, accept: Callable[[Any, Any], bool] = lambda theirs, ours: False) -> bool:
    """Return True if a caller of the drivers cannot distinguish two values in comparable form.

    An error of gmongo may be a subclass of PyMongo's error, and may have additional attributes.

    :param theirs: Value of PyMongo.
    :param ours: Value of gmongo.
    :param accept: Function that receives a part of each value, and returns True if the difference of
        the parts is intended.
    """
    if isinstance(theirs, RaisedError) and isinstance(ours, RaisedError):
        if theirs.has_text and not ours.has_text:
            return False
        if theirs.classes[0] in ours.classes:
            equal = _has_all_attributes(theirs.attributes, ours.attributes, accept) and theirs.labels == ours.labels
            return equal or accept(theirs, ours)
    if isinstance(theirs, DriverObject) and isinstance(ours, DriverObject) and theirs.kind == ours.kind:
        return _has_all_attributes(theirs.attributes, ours.attributes, accept) or accept(theirs, ours)
    if (
        isinstance(theirs, (tuple, list))
        and isinstance(ours, (tuple, list))
        and len(theirs) == len(ours)
        and not isinstance(theirs, RaisedError)
        and all(are_equal(one, other, accept) for one, other in zip(theirs, ours, strict=True))
    ):
        return True
    return bool(theirs == ours) or accept(theirs, ours)


def _has_all_attributes(theirs: tuple[Any, ...], ours: tuple[Any, ...], accept: Callable[[Any, Any], bool]) -> bool:
    """Return True if an object of gmongo has all attributes of the object of PyMongo, with equal
    values.
    """
    attributes = dict(ours)
    return all(name in attributes and are_equal(value, attributes[name], accept) for name, value in theirs)


def _is_random(value: bson.Binary) -> bool:
    """Return True for a random UUID of version 4.

    The UUIDs in the table of calls have other versions.
    """
    return value.subtype == 4 and value[6] >> 4 == 4


def _without_addresses(text: str) -> str:
    return re.sub(r"\b(pymongo|gmongo)\b", "driver", re.sub(r" at 0x[0-9a-f]+|(?<=127\.0\.0\.1:)\d+", "", text))

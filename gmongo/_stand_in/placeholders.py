"""Placeholders for PyMongo classes that gmongo does not have."""

from __future__ import annotations

from types import GenericAlias
from typing import ClassVar, NoReturn

from gmongo.errors import ConfigurationError


class Placeholder:
    """Base class of placeholder classes. The construction of an object raises an error with the reason `why`."""

    why: ClassVar[str]

    def __new__(cls, *arguments: object, **options: object) -> NoReturn:
        raise ConfigurationError(f"gmongo stands in for PyMongo and has no {cls.__name__}: {cls.why}")

    def __class_getitem__(cls, item: object) -> GenericAlias:
        return GenericAlias(cls, item)

"""Validators of options that only make sense as Python objects, and so are keyword arguments only.

Classes of higher floors are recognised by the name of the class: this floor imports none of them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from bson.codec_options import CodecOptions, TypeRegistry

from gmongo.options.validators import Rejected, Validator
from gmongo.read_preferences import _ReadPreference

# Every listener class of the monitoring API has one of these methods.
_LISTENER_METHODS = ("started", "opened", "pool_created")


def document_class(value: Any) -> type[Any]:
    """The class that documents are decoded to: a mutable mapping, or RawBSONDocument; None is dict."""
    try:
        return CodecOptions(document_class=value or dict).document_class
    except TypeError:
        raise Rejected("dict, RawBSONDocument or a subclass of MutableMapping", wrong_type=True) from None


def type_registry(value: Any) -> TypeRegistry | None:
    """A :class:`bson.codec_options.TypeRegistry`, or None."""
    if value is None or isinstance(value, TypeRegistry):
        return value
    raise Rejected("a bson.codec_options.TypeRegistry", wrong_type=True)


def tzinfo(value: Any) -> datetime.tzinfo | None:
    """A time zone, or None."""
    if value is None or isinstance(value, datetime.tzinfo):
        return value
    raise Rejected("a datetime.tzinfo", wrong_type=True)


def read_preference(value: Any) -> Any:
    """One of the classes of :mod:`gmongo.read_preferences`."""
    if isinstance(value, _ReadPreference):
        return value
    raise Rejected("a read preference, such as ReadPreference.SECONDARY", wrong_type=True)


def event_listeners(value: Any) -> list[Any]:
    """A list of listeners of :mod:`gmongo.monitoring`."""
    if not isinstance(value, (list, tuple)):
        raise Rejected("a list of event listeners", wrong_type=True)
    for listener in value:
        if not any(callable(getattr(listener, method, None)) for method in _LISTENER_METHODS):
            raise Rejected("a list of event listeners only", wrong_type=True)
    return list(value)


def function(value: Any) -> Callable[..., Any] | None:
    """Something that can be called, or None."""
    if value is not None and not callable(value):
        raise Rejected("callable", wrong_type=True)
    chosen: Callable[..., Any] | None = value
    return chosen


def instance_of(class_name: str) -> Validator:
    """A validator of instances of the class with that name, or None."""

    def validate(value: Any) -> Any:
        if value is None or any(cls.__name__ == class_name for cls in type(value).__mro__):
            return value
        raise Rejected(f"an instance of {class_name}", wrong_type=True)

    return validate

"""Validators of options whose values are Python objects. A URI cannot contain these options.

The validators recognise a class of a higher layer by its name, because this layer does not import
higher layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bson.codec_options import CodecOptions

from gmongo._documents import DocumentDict, Value
from gmongo.options.validators import Rejected, Validator
from gmongo.read_preferences import _ReadPreference

_LISTENER_METHODS = ("started", "opened", "pool_created")  # every listener class has at least one of these methods


def document_class(value: Value) -> type[Value]:
    """Check a document class: a subclass of MutableMapping, or RawBSONDocument. None means dict."""
    try:
        return CodecOptions(document_class=value or dict).document_class
    except TypeError:
        raise Rejected("dict, RawBSONDocument or a subclass of MutableMapping", wrong_type=True) from None


def read_preference(value: object) -> _ReadPreference:
    """Check an instance of a class in :mod:`gmongo.read_preferences`."""
    if isinstance(value, _ReadPreference):
        return value
    raise Rejected("a read preference, such as ReadPreference.SECONDARY", wrong_type=True)


def event_listeners(value: object) -> list[object]:
    """Check a list of listeners of :mod:`gmongo.monitoring`."""
    if not isinstance(value, (list, tuple)):
        raise Rejected("a list of event listeners", wrong_type=True)
    for listener in value:
        if not any(callable(getattr(listener, method, None)) for method in _LISTENER_METHODS):
            raise Rejected("a list that contains only event listeners", wrong_type=True)
    return list(value)


def callable_or_none(value: object) -> Callable[..., object] | None:
    """Check a callable, or None."""
    if value is not None and not callable(value):
        raise Rejected("a callable", wrong_type=True)
    checked: Callable[..., object] | None = value
    return checked


def tracing(value: object) -> DocumentDict | None:
    """Check the tracing options: None, or a mapping. All its keys are optional."""
    checked = _checked_mapping(value, ("enabled", "query_text_max_length", "tracer_provider"))
    length = checked.get("query_text_max_length") if checked else None
    if length is not None and (isinstance(length, bool) or not isinstance(length, int)):
        raise Rejected("a mapping whose query_text_max_length is an integer", wrong_type=True)
    if length is not None and length < 0:
        raise Rejected("a mapping whose query_text_max_length is 0 or above")
    return checked


def metrics(value: object) -> DocumentDict | None:
    """Check the metrics options: True, False, None, or a mapping. All its keys are optional."""
    return {"enabled": value} if isinstance(value, bool) else _checked_mapping(value, ("enabled", "meter_provider"))


def _checked_mapping(value: object, names: tuple[str, ...]) -> DocumentDict | None:
    """Check None, or a mapping with keys in `names`. The last name is the key of an OpenTelemetry provider."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise Rejected(f"a mapping with any of the keys {', '.join(names)}", wrong_type=True)
    if not set(value) <= set(names):
        raise Rejected(f"a mapping with no other keys than {', '.join(names)}")
    if not isinstance(value.get("enabled"), bool | None):
        raise Rejected("a mapping whose enabled is True or False", wrong_type=True)
    method = f"get_{names[-1].removesuffix('_provider')}"  # get_tracer, get_meter
    if value.get(names[-1]) is not None and not callable(getattr(value[names[-1]], method, None)):
        raise Rejected(f"a mapping whose {names[-1]} has the method {method}", wrong_type=True)
    return dict(value)


def instance_of(class_name: str, rule: str = "") -> Validator:
    """Return a validator that accepts None, and instances of the class that is named `class_name`."""

    def validate(value: object) -> object:
        if value is None or any(cls.__name__ == class_name for cls in type(value).__mro__):
            return value
        raise Rejected(rule or f"an instance of {class_name}", wrong_type=True)

    return validate

"""What classes of values have in common: they do not change, and an event is equal to itself alone."""

from __future__ import annotations

import dataclasses
import importlib
import sys

from gmongo import monitoring
from tests.unit.test_layers import MODULES

# What is filled in by its owner, or by a callback of the application's.
MUTABLE = {
    "gmongo.wire.ocsp.transport:CheckedTls",  # its context follows the certificate files
    "gmongo.wire.tls:Tls",
    "gmongo.auth_oidc:OIDCIdPInfo",
    "gmongo.auth_oidc:OIDCCallbackContext",
    "gmongo.auth_oidc:OIDCCallbackResult",
    "gmongo.execution.context:OperationContext",
    "gmongo.stable_api.judgement:Finding",
}


def data_classes() -> dict[str, type]:
    """Those of all modules that can be imported here, but for the servers of :mod:`gmongo.testing`, and for what takes
    PyMongo's place in the whole process as it is imported.
    """
    found: dict[str, type] = {}
    for name in MODULES:
        if name.startswith(("gmongo.testing", "gmongo.as_pymongo")):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:  # of an extra that is not installed
            continue
        for each in vars(module).values():
            if isinstance(each, type) and dataclasses.is_dataclass(each) and each.__module__ == module.__name__:
                found[f"{each.__module__}:{each.__qualname__}"] = each
    return found


def is_event(name: str) -> bool:
    return name.startswith(monitoring.__name__)


def test_values_do_not_change() -> None:
    classes = data_classes()
    frozen = {name for name, each in classes.items() if each.__dataclass_params__.frozen}
    assert {name for name in classes if not is_event(name)} - frozen == MUTABLE & classes.keys()
    for name in frozen:
        each = object.__new__(classes[name])
        for field in dataclasses.fields(classes[name]):
            try:
                setattr(each, field.name, None)
            except dataclasses.FrozenInstanceError:
                continue
            raise AssertionError(f"{name}.{field.name} can be changed")


def test_an_event_is_equal_to_itself_and_has_no_room_for_more() -> None:
    events = {name: each for name, each in data_classes().items() if is_event(name)}
    assert len(events) > 20
    for name, each in events.items():
        one, other = (object.__new__(each) for _ in range(2))
        assert one == one and one != other and hash(one) != hash(other), name
        assert not hasattr(one, "__dict__") or sys.version_info < (3, 11), name
        assert each.__repr__ is not object.__repr__ and not each.__dataclass_params__.repr, name

"""The public names and their parameters equal the record in ``public_api.txt``.

A change of a public name needs an entry in `CHANGELOG.md` and in `docs/upgrading.md`. ``python -m
tests.unit.test_public_api`` updates the record.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bson
import pytest

import gmongo
from tests.unit.test_documentation import (
    INDIRECT_CLASSES,
    MODULES,
    PUBLIC_OBJECTS,
    constructor_of,
    is_documented_by_base,
    is_public,
    public_members,
)

RECORD_PATH = Path(__file__).with_name("public_api.txt")
PARAMETER_PREFIXES = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def signature_of(public_object: Any) -> str:
    """Return the public parameters of a callable as text. ``=`` marks an optional parameter."""
    if isinstance(public_object, property) or is_documented_by_base(public_object):
        return ""
    if inspect.isclass(public_object) and not constructor_of(public_object).__module__.startswith("gmongo"):
        return ""
    parameter_texts: list[str] = []
    for name, parameter in inspect.signature(public_object).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and not any(each.startswith("*") for each in parameter_texts):
            parameter_texts.append("*")
        optional = "" if parameter.default is parameter.empty else "="
        if name not in ("self", "cls") and is_public(name):
            parameter_texts.append(f"{PARAMETER_PREFIXES.get(parameter.kind, '')}{name}{optional}")
    return f"({', '.join(parameter_texts)})"


def constants_of(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the name of each public constant and data class field, with an empty property."""
    fields = {each.name for each in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for name, value in (kind.__members__ if issubclass(kind, enum.Enum) else vars(kind)).items():
        if is_public(name) and not callable(value) and (name in fields or not hasattr(value, "__get__")):
            yield name, property()


def lines_of(name: str, public_object: Any) -> Iterator[str]:
    """Yield the record line of an object, and of each member that no public base class defines."""
    yield f"{name}{signature_of(public_object)}"
    if inspect.isclass(public_object):
        bases = {base for base in public_object.__mro__[1:] if base in PUBLIC_OBJECTS.values()}
        for member, value in (*public_members(public_object).items(), *constants_of(public_object)):
            if not any(
                vars(base).get(member) is vars(public_object).get(member, vars(base).get(member)) for base in bases
            ):
                yield f"{name}.{member}{signature_of(value)}"


def listed_names() -> set[str]:
    return {f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__}


def public_api() -> list[str]:
    """Return the sorted lines of the record: the public names in ``gmongo``, with parameters."""
    lines = {line for name, public_object in PUBLIC_OBJECTS.items() for line in lines_of(name, public_object)}
    return sorted(each.removeprefix("gmongo.") for each in lines | (listed_names() - set(PUBLIC_OBJECTS)))


def test_public_names_and_parameters_match_record() -> None:
    assert public_api() == RECORD_PATH.read_text("utf-8").splitlines()


def test_all_of_each_module_lists_its_public_objects() -> None:
    assert set(PUBLIC_OBJECTS) - set(INDIRECT_CLASSES) <= listed_names()


@pytest.mark.parametrize("removed_name", [
    "add_user", "collection_names", "count", "ensure_index", "find_and_modify", "group", "initialize_ordered_bulk_op",
    "initialize_unordered_bulk_op", "insert", "map_reduce", "reindex", "remove", "remove_user", "save", "update",
])  # fmt: skip
def test_call_of_removed_method_names_existing_successors(removed_name: str) -> None:
    collection = gmongo.MongoClient("h", connect=False).db.c
    with pytest.raises(TypeError, match=f"Collection has no method '{removed_name}'; use ") as caught:
        getattr(collection, removed_name)()
    successors = re.findall(r"(\w+)\(", str(caught.value).partition("; use ")[2])
    assert successors and all(hasattr(collection.database, name) or name in dir(collection) for name in successors)


def test_version_and_has_c_have_documented_values() -> None:
    assert gmongo.get_version_string() == gmongo.version == gmongo.__version__
    parts = gmongo.version.split(".")
    assert gmongo.version_tuple == tuple(int(each) if each.isdigit() else each for each in parts)
    assert gmongo.has_c() is bson.has_c()


def test_first_read_of_public_module_imports_and_returns_module() -> None:
    assert gmongo.__getattr__("errors") is importlib.import_module("gmongo.errors")


if __name__ == "__main__":
    RECORD_PATH.write_text("\n".join([*public_api(), ""]), "utf-8")

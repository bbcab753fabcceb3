"""Each public function, class, constructor, method and property has a complete docstring."""

from __future__ import annotations

import doctest
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gmongo
from gmongo import gridfs
from gmongo.options.table import OPTIONS
from gmongo.testing import Deployment

# Names in the package folder without a reference page: internal packages, `as_pymongo`, `py.typed`.
INTERNAL = frozenset({"as_pymongo", "auth", "cmap", "engines", "events", "execution", "options", "py", "sdam", "wire"})
MODULES = (
    "gmongo",
    *(
        f"gmongo.{path.stem}"
        for path in Path(gmongo.__file__).parent.iterdir()
        if not path.name.startswith("_") and path.stem not in INTERNAL
    ),
    "gmongo.gridfs.errors",
)
# Public classes that applications do not import, because gmongo returns their objects.
INDIRECT_CLASSES = (
    "gmongo.testing.command.Request",
    "gmongo.testing.deployment.Members",
    "gmongo.testing.simulation.certificates.Certificates",
    "gmongo.testing.simulation.command_log.CommandLog",
    "gmongo.testing.simulation.fail_points.FailPointHandle",
    "gmongo.testing.simulation.member.Member",
    "gmongo.testing.simulation.network.Network",
)
ROOT = Path(gmongo.__file__).parents[1]
PARAMETER_PATTERN = re.compile(r"^:param (\w+):", re.MULTILINE)
RAISES_PATTERN = re.compile(r"^:raises [\w.]+:", re.MULTILINE)
FIELD_PATTERN = re.compile(r"^:(\w+)(?: [\w.]+)?:(?!`)", re.MULTILINE)
KNOWN_FIELDS = frozenset({"param", "raises", "returns", "ivar"})


def is_public(name: str) -> bool:
    return not name.startswith("_")


def public_objects() -> dict[str, Any]:
    """Return the public functions and classes, keyed by their shortest qualified names."""
    objects_by_id: dict[int, tuple[str, Any]] = {}
    for module_name in sorted(MODULES, key=len, reverse=True):
        module = importlib.import_module(module_name)
        own_names = [
            name
            for name, public_object in vars(module).items()
            if getattr(public_object, "__module__", "") == module_name
        ]
        for name in getattr(module, "__all__", filter(is_public, own_names)):
            public_object = getattr(module, name)
            if (
                inspect.isclass(public_object) or inspect.isroutine(public_object)
            ) and public_object.__module__.startswith("gmongo"):
                objects_by_id.setdefault(id(public_object), (f"{module_name}.{name}", public_object))
    for path in INDIRECT_CLASSES:
        module_name, _, name = path.rpartition(".")
        public_object = getattr(importlib.import_module(module_name), name)
        objects_by_id.setdefault(id(public_object), (path, public_object))
    return dict(sorted(objects_by_id.values(), key=lambda each: each[0]))


@cache
def public_members(kind: type) -> dict[str, Any]:
    """Return the public methods and properties that a class defines or inherits from another class
    of gmongo.
    """
    members = {}
    for name, _ in inspect.getmembers(kind):
        owner = next((base for base in kind.__mro__ if name in vars(base)), None)
        if is_public(name) and owner is not None and owner.__module__.startswith("gmongo"):
            member = vars(owner)[name]
            member = getattr(member, "__func__", member)
            if inspect.isroutine(member) or isinstance(member, property):
                members[name] = member
    return members


PUBLIC_OBJECTS = public_objects()
CASES: dict[str, tuple[Any, str | None]] = {
    name: (public_object, None) for name, public_object in PUBLIC_OBJECTS.items()
} | {
    f"{name}.{member}": (kind, member)
    for name, kind in PUBLIC_OBJECTS.items()
    if inspect.isclass(kind)
    for member in public_members(kind)
}


def documented_object(public_object: Any, member: str | None) -> tuple[Any, str]:
    """Return a public object or its member `member`, and the docstring of the returned object."""
    if member is None:
        return public_object, inspect.getdoc(public_object) or ""
    return public_members(public_object)[member], inspect.getdoc(getattr(public_object, member)) or ""


def constructor_of(kind: type) -> type:
    if issubclass(kind, enum.Enum):
        return enum.Enum
    return next(base for base in kind.__mro__ if {"__init__", "__new__"} & set(vars(base)))


def is_documented_by_base(public_object: Any) -> bool:
    """Return True if an object is a class that inherits the constructor of a public base class."""
    return inspect.isclass(public_object) and constructor_of(public_object) in set(PUBLIC_OBJECTS.values()) - {
        public_object
    }


def public_parameters(public_object: Any) -> list[str]:
    if isinstance(public_object, property):
        return []
    if inspect.isclass(public_object) and not constructor_of(public_object).__module__.startswith("gmongo"):
        return []
    try:
        parameters = inspect.signature(public_object).parameters
    except ValueError:
        return []
    return [name for name in parameters if name not in ("self", "cls") and is_public(name)]


def has_own_docstring(documented: Any, public_object: Any, text: str) -> bool:
    """Return True if the docstring `text` comes from the source code, and not from Python itself."""
    if type(public_object) is type and text.startswith(f"{public_object.__name__}("):
        return False
    return bool(text) and not (isinstance(documented, property) and text == inspect.getdoc(type(documented.fget)))


def documents_parameters(documented: Any, text: str) -> bool:
    """Return True if a docstring, or the docstring of a public base class, describes all parameters
    in order.
    """
    described = PARAMETER_PATTERN.findall(text)
    return (not described and is_documented_by_base(documented)) or described == public_parameters(documented)


def has_well_formed_fields(text: str) -> bool:
    raised = len(re.findall(r"^:raises", text, re.MULTILINE))
    return set(FIELD_PATTERN.findall(text)) <= KNOWN_FIELDS and len(RAISES_PATTERN.findall(text)) == raised


def test_public_docstrings_describe_all_parameters() -> None:
    faulty_names = []
    for name, (public_object, member) in CASES.items():
        documented, text = documented_object(public_object, member)
        if not (
            has_own_docstring(documented, public_object, text)
            and documents_parameters(documented, text)
            and has_well_formed_fields(text)
        ):
            faulty_names.append(name)
    assert faulty_names == []


EXAMPLES = [pytest.param(*case, id=name) for name, case in CASES.items() if ">>>" in documented_object(*case)[1]]


@pytest.fixture
def variables() -> Iterator[dict[str, Any]]:
    """Yield the variables of the docstring examples, such as a client, a database, and a collection
    with two documents.
    """
    with Deployment.replica_set(members=1) as deployment, gmongo.MongoClient(deployment.uri) as client:
        database = client.test
        database.notes.insert_one({"_id": 5, "title": "first", "tags": ["a"]})
        database.notes.insert_one({"_id": 6, "title": "second", "tags": ["a", "b"]})
        yield {name: getattr(gmongo, name) for name in gmongo.__all__} | {
            "client": client,
            "database": database,
            "notes": database.notes,
            "counters": database.counters,
            "files": gridfs.GridFS(database),
            "GridFSBucket": gridfs.GridFSBucket,
        }


@pytest.mark.parametrize(("public_object", "member"), EXAMPLES)
def test_docstring_example_has_documented_output(
    public_object: Any, member: str | None, variables: dict[str, Any]
) -> None:
    qualified_name = public_object.__name__ if member is None else f"{public_object.__name__}.{member}"
    example = doctest.DocTestParser().get_doctest(
        documented_object(public_object, member)[1], variables, qualified_name, None, None
    )
    output: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(example, out=output.append).failed == 0, "".join(output)


def test_client_docstring_lists_exactly_all_options() -> None:
    text = inspect.getdoc(gmongo.MongoClient) or ""
    parameter_names = set(inspect.signature(gmongo.MongoClient).parameters)
    items = re.findall(r"^- (.+?):(?: |$)", text, re.MULTILINE)
    listed_options = {name.lower() for item in items for name in re.findall(r"``(\w+)``", item)}
    assert listed_options - {"ssl"} == {option.key for option in OPTIONS if option.name not in parameter_names}


def test_reference_pages_include_all_public_modules() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    assert set(re.findall(r"automodule:: (\S+)", pages)) == set(MODULES) - {"gmongo"}

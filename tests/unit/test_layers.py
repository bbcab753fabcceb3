"""The house has one way down: each floor imports only those below it."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import gmongo

ROOT = Path(gmongo.__file__).parent

# From the top. What is not a directory here is a module of the API.
FLOORS = ("api", "engines", "operations", "execution", "sdam", "cmap", "auth", "wire")
# What any floor may import. They import each other, and `bson`, but no floor.
LEAVES = frozenset(
    {
        "_background",
        "_random",
        "_clock",
        "_cursor_type",
        "_documents",
        "_fork",
        "_traceback_scrub",
        "_object_ids",
        "_redaction",
        "_safe_log",
        "_server_facts",
        "_truncated_repr",
        "_native_threads",
        "_topology_type",
        "_version",
        "auth_oidc",
        "collation",
        "driver_info",
        "errors",
        "events",
        "monitoring",
        "read_concern",
        "read_preferences",
        "results",
        "server_api",
        "server_type",
        "write_concern",
    }
)
# Beside the house.
ASIDE = frozenset({"options", "testing"})
# Events name the objects that they show: an exception to the rule, each with its reason.
ALLOWED = {
    ("events", "cmap"): "an event of a command shows the connection it was sent on",
    ("events", "sdam"): "an event of discovery shows descriptions",
    ("events", "wire"): "the type of an address",
    ("monitoring", "sdam"): "an event of discovery shows descriptions",
    ("testing", "wire"): "the embedded servers receive commands without the driver",
    ("testing", "api"): "the plugin for pytest makes clients",
}


def part_of(module: str) -> str:
    """The floor, leaf or annexe that a module of gmongo belongs to."""
    first = module.split(".")[1] if "." in module else "api"
    known = first in FLOORS or first in LEAVES or first in ASIDE
    return first if known else "api"


def imports_of(path: Path, types: bool = False) -> set[str]:
    """The gmongo modules that a file imports when it runs.

    :param types: with those for type checkers only.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    branches = [] if types else [node for node in ast.walk(tree) if _for_types_only(node)]
    skipped = {id(node) for branch in branches for node in ast.walk(branch)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {_module_of(name) for name in found if name.split(".")[0] == "gmongo"}


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _module_of(name: str) -> str:
    """``from gmongo import monitoring`` imports a module, ``from gmongo.errors import X`` a name of one."""
    return name if name in MODULES else name.rpartition(".")[0]


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = ("gmongo", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def allowed(source: str, target: str) -> bool:
    if source == target or target in LEAVES or (source, target) in ALLOWED:
        return True
    if source == "api":
        return target != "testing"
    return source in FLOORS and target in FLOORS and FLOORS.index(source) < FLOORS.index(target)


def test_modules_import_only_what_is_below():
    wrong = {
        (module, name)
        for module, path in MODULES.items()
        for name in imports_of(path, types=True)
        if not allowed(part_of(module), part_of(name))
    }
    assert wrong == set()


# Modules that import one another, imports for type checkers included. Each group has a reason.
CIRCLES = {
    ("errors", "results"): "PyMongo's names: an exception has a partial result, and a result raises an exception",
    (
        "change_stream",
        "client_session",
        "collection",
        "command_cursor",
        "cursor",
        "database",
        "mongo_client",
    ): "each object returns the object that made it, and type checkers must know its class",
}


def circles() -> set[tuple[str, ...]]:
    """The groups of modules below ``gmongo``, without ``gmongo.testing``, that import one another."""
    imported = {
        name: {target for target in imports_of(path, types=True) if MODULES[target].name != "__init__.py"} - {name}
        for name, path in MODULES.items()
        if part_of(name) != "testing"
    }
    reached = {name: set(targets) for name, targets in imported.items()}
    for middle in imported:
        for targets in reached.values():
            if middle in targets:
                targets |= reached[middle]
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in reached
        if name in reached[name]
    }
    return {tuple(name.removeprefix("gmongo.") for name in group) for group in groups}


def test_modules_do_not_import_one_another():
    assert circles() == set(CIRCLES)


def test_exceptions_to_the_rule_are_in_use():
    used = {
        (part_of(module), part_of(name)) for module, path in MODULES.items() for name in imports_of(path, types=True)
    }
    assert set(ALLOWED) <= used


def test_pure_modules_know_no_greenlets():
    """The transition functions and server selection run without gevent."""
    for name in (
        "server_description",
        "topology_description",
        "transitions",
        "selection",
        "application_errors",
        "network_errors",
    ):
        tree = ast.parse(MODULES[f"gmongo.sdam.{name}"].read_text(encoding="utf-8"))
        roots = {
            name.split(".")[0]
            for node in ast.walk(tree)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert not roots & {"gevent", "greenlet", "socket", "_socket"}, name


# Modules that applications import, though PyMongo has none of their names.
OF_ITS_OWN = {"as_pymongo": "lets PyMongo's names lead to gmongo", "__main__": "runs a program so", "__init__": ""}


def test_a_module_at_the_top_is_pymongos_or_has_an_underscore():
    """What is a floor or an annexe is a package; any other module without an underscore is a name of PyMongo's."""
    names = {path.stem for path in ROOT.glob("*.py")}
    private = {name for name in names if name.startswith("_") and not name.startswith("__")}
    assert {name for name in names - private - set(OF_ITS_OWN) if find_spec(f"pymongo.{name}") is None} == set()

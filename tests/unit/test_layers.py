"""Layers of the architecture: each layer imports only lower layers."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import gmongo

ROOT = Path(gmongo.__file__).parent

# The layers, from top to bottom. The layer `api` contains each module that LAYERS, LEAF_MODULES and
# BESIDE_LAYERS do not list.
LAYERS = ("api", "engines", "operations", "execution", "sdam", "cmap", "auth", "wire")
# Modules that any layer may import. From gmongo, leaf modules import only leaf modules and the
# targets in ALLOWED_IMPORTS.
LEAF_MODULES = frozenset(
    {
        "_background", "_random", "_clock", "_documents", "_fork", "_parameter_docs",
        "_traceback_scrub", "_nearest", "_object_ids", "_redaction", "_safe_log", "_server_facts",
        "_truncated_repr", "_native_threads", "_topology_type", "_version", "auth_oidc",
        "collation", "driver_info", "errors", "events", "monitoring", "read_concern",
        "read_preferences", "results", "server_api", "server_type", "write_concern",
    }
)  # fmt: skip
# Packages that belong to no layer.
BESIDE_LAYERS = frozenset({"options", "testing"})
# (importer, imported layer) -> reason for a permitted import that violates the rule of the layers.
ALLOWED_IMPORTS = {
    ("events", "cmap"): "an event of a command shows the connection of the command",
    ("events", "sdam"): "an event of discovery shows descriptions",
    ("events", "wire"): "the type of an address",
    ("monitoring", "sdam"): "an event of discovery shows descriptions",
    ("testing", "auth"): "simulated servers prepare passwords with SASLprep",
    ("testing", "wire"): "the embedded servers receive commands without the driver",
    ("testing", "api"): "the pytest plugin creates clients",
}


def layer_or_package_of(module: str) -> str:
    """Return the layer, leaf module, or package of BESIDE_LAYERS that contains a gmongo module."""
    first = module.split(".")[1] if "." in module else "api"
    is_known = first in LAYERS or first in LEAF_MODULES or first in BESIDE_LAYERS
    return first if is_known else "api"


def imported_modules(path: Path, include_type_imports: bool = False) -> set[str]:
    """Return the gmongo modules that a file imports. Skip imports under `TYPE_CHECKING`, unless
    `include_type_imports` is True.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    branches = [] if include_type_imports else [node for node in ast.walk(tree) if _is_type_checking_block(node)]
    skipped_ids = {id(node) for branch in branches for node in ast.walk(branch)}
    modules: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped_ids:
            continue
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {_module_of(name) for name in modules if name.split(".")[0] == "gmongo"}


def _is_type_checking_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _module_of(name: str) -> str:
    """Return the module of a dotted name, such as ``gmongo.errors`` for ``gmongo.errors.X``."""
    return name if name in MODULES else name.rpartition(".")[0]


def gmongo_modules() -> dict[str, Path]:
    modules = {}
    for path in ROOT.rglob("*.py"):
        parts = ("gmongo", *path.relative_to(ROOT).with_suffix("").parts)
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


MODULES = gmongo_modules()


def import_is_allowed(source: str, target: str) -> bool:
    if source == target or target in LEAF_MODULES or (source, target) in ALLOWED_IMPORTS:
        return True
    if source == "api":
        return target != "testing"
    return source in LAYERS and target in LAYERS and LAYERS.index(source) < LAYERS.index(target)


def test_modules_import_only_lower_layers():
    forbidden_imports = {
        (module, name)
        for module, path in MODULES.items()
        for name in imported_modules(path, include_type_imports=True)
        if not import_is_allowed(layer_or_package_of(module), layer_or_package_of(name))
    }
    assert forbidden_imports == set()


# Modules that import one another, at run time or under `TYPE_CHECKING` -> reason for the import
# cycle.
CYCLES = {
    ("errors", "results"): "PyMongo's names: an exception has a partial result, and a result raises an exception",
    (
        "change_stream", "client_session", "collection", "command_cursor", "cursor", "database",
        "mongo_client",
    ): "an object returns its creator, and type checkers must know the creator's class",
}  # fmt: skip


def import_cycles(imports: dict[str, set[str]]) -> set[tuple[str, ...]]:
    reached = {name: set(targets) for name, targets in imports.items()}
    for middle in imports:
        for targets in reached.values():
            if middle in targets:
                targets |= reached[middle]
    groups = ({other for other in reached[name] if name in reached[other]} for name in reached if name in reached[name])
    return {tuple(sorted(name.removeprefix("gmongo.") for name in group)) for group in groups}


def test_only_listed_groups_of_modules_import_one_another():
    imports = {
        name: {
            target
            for target in imported_modules(path, include_type_imports=True)
            if MODULES[target].name != "__init__.py"
        }
        - {name}
        for name, path in MODULES.items()
        if layer_or_package_of(name) != "testing"
    }
    assert import_cycles(imports) == set(CYCLES)


def test_run_time_imports_contain_no_cycle():
    assert import_cycles({module: imported_modules(path) - {module} for module, path in MODULES.items()}) == set()


def test_import_cycle_of_three_modules_is_found():
    assert import_cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == {("a", "b", "c")}


def test_modules_without_input_and_output_import_neither_gevent_nor_sockets():
    for name in (
        "server_description",
        "topology_description",
        "transitions",
        "selection",
        "application_errors",
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


# Public top-level modules of gmongo that need no module of the same name in PyMongo.
GMONGO_ONLY = {
    "as_pymongo": "maps PyMongo's names to gmongo",
    "__main__": "runs a program with the names of `as_pymongo`",
    "__init__": "",
}


def test_top_level_module_exists_in_pymongo_or_is_private():
    """Each public top-level module outside GMONGO_ONLY has the name of a module of PyMongo."""
    names = {path.stem for path in ROOT.glob("*.py")}
    private = {name for name in names if name.startswith("_") and not name.startswith("__")}
    assert {name for name in names - private - set(GMONGO_ONLY) if find_spec(f"pymongo.{name}") is None} == set()

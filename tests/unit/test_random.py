"""The driver and simulated deployments draw random values from one module, which a seed controls."""

from __future__ import annotations

import ast
from pathlib import Path

import gmongo
from gmongo import _random

ROOT = Path(gmongo.__file__).parent
# Only `gmongo._random` and _MODULES_WITH_PASSED_GENERATOR may import these modules. Other modules may
# import `uuid`, `os` and `bson`, but must not call the functions in _FUNCTIONS.
_GENERATOR_MODULES = {"random", "secrets", "numpy"}
_FUNCTIONS = {("os", "urandom"), ("uuid", "uuid1"), ("uuid", "uuid4"), ("bson", "ObjectId")}
# Modules of the simulated network, to which a test may pass a random generator.
_MODULES_WITH_PASSED_GENERATOR = {"testing/simulation/network.py", "testing/simulation/control.py", "testing/remote.py"}


def test_only_random_module_imports_generators() -> None:
    sources = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
    del sources["_random.py"]
    assert len(sources) > 300
    results = {name: random_sources(path.read_text(encoding="utf-8")) for name, path in sources.items()}
    assert {name: values for name, values in results.items() if values} == {
        name: {"random"} for name in _MODULES_WITH_PASSED_GENERATOR
    }


def random_sources(code: str) -> set[str]:
    """Return the sources of random values that a module uses: imported generators, and random
    functions of modules.
    """
    results = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            results |= {name.name for name in node.names} & _GENERATOR_MODULES
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            results |= {node.module} & _GENERATOR_MODULES
            results |= {
                name.name for name in node.names if (node.module, name.name) in _FUNCTIONS - {("bson", "ObjectId")}
            }
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            results |= {node.attr} if (node.value.id, node.attr) in _FUNCTIONS else set()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ObjectId":
            results |= set() if node.args or node.keywords else {"ObjectId"}
    return results


def test_random_source_in_code_is_found() -> None:
    assert random_sources("import random") == random_sources("from random import Random") == {"random"}
    assert random_sources("import uuid\nuuid.uuid4()") == random_sources("from uuid import uuid4") == {"uuid4"}
    assert random_sources("import os\nos.urandom(3)") == {"urandom"}
    assert random_sources("from bson import ObjectId\nObjectId()") == {"ObjectId"}
    assert random_sources("import os, uuid\nfrom bson import ObjectId\nObjectId(b'')\nuuid.UUID(int=1)") == set()


def random_values() -> list[object]:
    return [_random.random(), _random.sample(range(1000), 3), _random.urandom(8), _random.uuid4()]


def test_equal_seed_repeats_random_values() -> None:
    with _random.repeatable(3):
        first = random_values()
    with _random.repeatable(3):
        assert random_values() == first
    with _random.repeatable("3"):
        assert random_values() != first


def test_seed_produces_equal_values_in_every_python_version() -> None:
    with _random.repeatable(7):
        assert random_values()[1:3] == [[154, 404, 666], bytes.fromhex("d07f5c0c332f8b12")]


def test_end_of_seeded_block_restores_random_functions() -> None:
    before = _random.random, _random.sample, _random.urandom
    with _random.repeatable(3):
        assert _random.urandom != before[2]
    assert (_random.random, _random.sample, _random.urandom) == before

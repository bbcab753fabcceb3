"""The constants of the driver equal the table in `numbers.tsv`.

The constants are limits, sizes, times and values of the wire protocol. Many constants have no effect
that a test can observe. If a constant changes, the test fails until the table contains the new value.
"""

from __future__ import annotations

import ast
import importlib.util
from datetime import timedelta
from pathlib import Path

from tests.unit.test_layers import MODULES

# Other tests compare the constants of these packages with servers and with PyMongo.
OTHER_PACKAGES = ("_server_facts", "_stand_in", "testing")
NUMBERS: dict[str, dict[str, object]] = {}
for line in Path(__file__).with_name("numbers.tsv").read_text("utf-8").splitlines():
    _module, _name, _value = line.split("\t")
    NUMBERS.setdefault(_module, {})[_name] = eval(_value, {"timedelta": timedelta})


def contains_only_numbers_and_names(value: object) -> bool:
    if isinstance(value, dict):
        return contains_only_numbers_and_names([*value, *value.values()])
    if type(value) in (list, tuple):
        return all(map(contains_only_numbers_and_names, value))
    if isinstance(value, str):
        return "/" not in value  # a path differs between machines
    return isinstance(value, (int, float, range, timedelta))


def constants_with_numbers(module: str) -> dict[str, object]:
    """Return, keyed by name, the module-level constants whose source code contains a number.

    Import the module only if there is such a constant, because the import of some modules has effects.
    """
    spec = importlib.util.find_spec(f"gmongo.{module}")
    assert spec is not None and spec.origin is not None
    names = [
        each.id
        for statement in ast.parse(Path(spec.origin).read_text("utf-8")).body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        and any(isinstance(each, ast.Constant) and type(each.value) in (int, float) for each in ast.walk(statement))
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        for each in ast.walk(target)
        if isinstance(each, ast.Name)
    ]
    values = vars(importlib.import_module(f"gmongo.{module}")) if names else {}
    return {name: values[name] for name in names if contains_only_numbers_and_names(values[name])}


def test_module_constants_match_table() -> None:
    constants = {}
    modules = [name.removeprefix("gmongo.") for name in MODULES if name != "gmongo"]
    for module in (name for name in modules if name.partition(".")[0] not in OTHER_PACKAGES):
        try:
            constants[module] = constants_with_numbers(module)
        except ImportError:  # the package of an extra is not installed
            constants[module] = NUMBERS.get(module, {})
    assert {module: numbers for module, numbers in constants.items() if numbers} == NUMBERS

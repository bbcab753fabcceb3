"""The constants of the driver equal the table in `numbers.tsv`.

The constants are limits, sizes, times and values of the wire protocol. Many constants have no effect
that a test can observe. If a constant changes, the test fails until the table contains the new value.
"""

from __future__ import annotations

import ast
import importlib
import inspect
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
    """Return, keyed by name, the module-level constants whose source code contains a number."""
    imported = importlib.import_module(f"gmongo.{module}")
    constants = {}
    for statement in ast.parse(inspect.getsource(imported)).body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and any(
            isinstance(each, ast.Constant) and type(each.value) in (int, float) for each in ast.walk(statement)
        ):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            constants.update(
                {name: vars(imported)[name] for name in names if contains_only_numbers_and_names(vars(imported)[name])}
            )
    return constants


def test_module_constants_match_table() -> None:
    constants = {}
    modules = [name.removeprefix("gmongo.") for name in MODULES if name.startswith("gmongo.")]
    for module in modules:
        if module.partition(".")[0] in OTHER_PACKAGES:
            continue
        try:
            constants[module] = constants_with_numbers(module)
        except ImportError:  # the package of an extra is not installed
            constants[module] = NUMBERS.get(module, {})
    assert {module: numbers for module, numbers in constants.items() if numbers} == NUMBERS

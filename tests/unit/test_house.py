"""The house keeps its shape: no circle of imports, no function that fills more than a screen, a map that is true."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import gmongo
from tests.unit.test_layers import MODULES, imports_of, part_of

ROOT = Path(gmongo.__file__).parent
ARCHITECTURE = ROOT.parent / "ARCHITECTURE.md"

LONGEST = 35
LONGEST_WHEN_HOT = 80
# Every call in these would be paid by every operation.
HOT = {
    "execution/attempt.py:Attempt.run": "one try of an operation",
    "execution/command.py:CommandRunner.run": "one command on one connection",
    "execution/command_fields.py:CommandFields.decorate": "what goes on every command",
    "wire/transport.py:Transport.round_trip": "send and receive without a switch where that is possible",
    "cursor.py:Cursor.__init__": "what each find makes, with an end for those without options",
    "cmap/server_connection.py:ServerConnection.exchange": "one request and its reply, with what is wrong with them",
}


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules of which each leads to each other."""
    reached = {module: _reached(module, imports) for module in imports}
    groups: list[set[str]] = []
    for module in sorted(imports):
        group = {other for other in reached[module] if module in reached[other]}
        if len(group) > 1 and group not in groups:
            groups.append(group)
    return groups


def _reached(module: str, imports: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        new = imports[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles({module: imports_of(path) - {module} for module, path in MODULES.items()}) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == [{"a", "b", "c"}]


def lengths(module: str) -> Iterator[tuple[str, int]]:
    """The functions of a module, and how many lines their bodies have without the docstring."""
    for name, function in _functions(_tree(module), ""):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        if body:
            yield f"{MODULES[module].relative_to(ROOT)}:{name}", int(body[-1].end_lineno or 0) - body[0].lineno + 1


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def test_functions_fit_a_screen() -> None:
    found = {name: length for module in MODULES for name, length in lengths(module)}
    assert {name for name, length in found.items() if length > LONGEST} == set(HOT)
    assert max(found[name] for name in HOT) <= LONGEST_WHEN_HOT


# Where nothing more can be said: what options hold, what libraries without types have, what an operation returns.
UNTYPED = 41


def uses_of_any(module: str) -> int:
    """How often a module says that something may be used as anything; `gmongo._documents` has names for documents."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(_tree(module)))


def test_any_becomes_rarer() -> None:
    uses = Counter({module: uses_of_any(module) for module in MODULES if part_of(module) != "testing"})
    assert uses.total() <= UNTYPED, f"the number only sinks; it is in {+uses}"


# What the field has plain terms for: a greenlet or a connection is no person, and nothing of this is told in pictures.
PICTURES = r"nobody|somebody|heirs?|bombs?|liars?|farewells?|lies?[ _]in[ _]wait|hangs?[ _]up|in[ _]passing"
# Users, a key and an author of that name, in tests of what is not there.
NAMED_SO = re.compile(r"""["'/.](nobody|somebody)["'-]""")


def pictures_in(text: str) -> list[str]:
    """The words of a text that stand for something else."""
    return re.findall(rf"(?<![a-z])(?:{PICTURES})(?![a-z])", NAMED_SO.sub("", text), flags=re.IGNORECASE)


TEXTS = [
    path
    for folder in ("gmongo", "tests", "docs", "examples", "benchmarks", ".")
    for path in sorted((ROOT.parent / folder).glob("*" if folder == "." else "**/*"))
    if path.suffix in (".py", ".md") and path != Path(__file__)
]


# Greenlets, connections and servers are things. What is not looked at is about people, or the simulation.
PERSONS = re.compile(r"(?<![a-z$.\"])(?:who|whom|whoever|everybody)(?![a-z\"])(?!_am_i)", flags=re.IGNORECASE)
ABOUT_PEOPLE = {"docs", "examples", "status", "testing", "CHANGELOG.md", "SECURITY.md", "openssl.py", "ocsp.py"}
ABOUT_THINGS = [path for path in TEXTS if ABOUT_PEOPLE.isdisjoint(path.relative_to(ROOT.parent).parts)]


def test_greenlets_are_no_persons() -> None:
    found = {str(path.relative_to(ROOT.parent)): PERSONS.findall(path.read_text("utf-8")) for path in ABOUT_THINGS}
    assert {path: words for path, words in found.items() if words} == {}


def test_words_are_plain() -> None:
    found = {str(path.relative_to(ROOT.parent)): pictures_in(path.read_text("utf-8")) for path in TEXTS}
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize("text", ["nobody waits", "test_an_heir_is_replaced", "Bombs", "it lies in wait"])
def test_a_picture_is_found(text: str) -> None:
    assert len(pictures_in(text)) == 1


def test_a_name_is_no_picture() -> None:
    assert pictures_in('login("nobody") at admin.nobody" and /nobody-1; anybody, bombarded, their') == []


LONG, OFTEN = 100, 15


def repeated(texts: Iterable[str]) -> dict[str, int]:
    """The long descriptions of parameters that stand in many docstrings, and how often."""
    described = re.compile(r":param \w+: ((?:.|\n(?=\s+[^\s:\"]))*)")
    found = Counter(" ".join(each.split()) for text in texts for each in described.findall(text))
    return {each: times for each, times in found.items() if len(each) > LONG and times > OFTEN}


def test_what_many_methods_take_is_described_once() -> None:
    assert repeated(path.read_text("utf-8") for path in MODULES.values()) == {}


def test_a_long_description_that_is_repeated_is_found() -> None:
    text = f"    :param one: {'word ' * 30}\n        goes on\n    :param two: short\n"
    assert list(repeated([text] * (OFTEN + 1)).values()) == [OFTEN + 1]
    assert repeated([text] * OFTEN) == {}


def names_in(text: str) -> list[str]:
    """What stands in backquotes and looks like a file, a folder or a dotted name of gmongo's."""
    quoted = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [name for name in quoted if re.fullmatch(r"[\w/]+\.py|[\w/]+/|_?[A-Za-z]\w*(\.\w+)+", name)]


def exists(name: str) -> bool:
    """Whether there is such a file or folder, such a name in a module, or such an attribute of a class."""
    if name.endswith((".py", "/")) or "/" in name:
        return any((base / name).exists() for base in (ROOT, ROOT.parent))
    if name.split(".", maxsplit=1)[0] in ("gevent", "notes", "pymongo"):
        return True
    first, _, rest = name.removeprefix("gmongo.").partition(".")
    sources = [path for module, path in MODULES.items() if module.split(".")[-1] == first]
    if sources:
        return any(re.search(rf"\b{re.escape(rest.split('.')[0])}\b", path.read_text("utf-8")) for path in sources)
    return any(_has_attribute(module, first, rest) for module in MODULES)


def _has_attribute(module: str, class_name: str, attribute: str) -> bool:
    for each in ast.walk(_tree(module)):
        if isinstance(each, ast.ClassDef) and each.name == class_name:
            nodes = list(ast.walk(each))
            names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
            if attribute in names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}:
                return True
    return False


def test_every_name_in_the_architecture_page_exists() -> None:
    assert [name for name in names_in(ARCHITECTURE.read_text("utf-8")) if not exists(name)] == []


@pytest.mark.parametrize("name", ["cmap/nothing.py", "nothing/", "Pool.nothing", "Nothing.check_out", "_clock.nothing"])
def test_what_is_not_there_is_found(name: str) -> None:
    assert names_in(f"`{name}`") == [name]
    assert not exists(name)

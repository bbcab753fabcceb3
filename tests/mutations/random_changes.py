"""Draw random changes of gmongo, and choose the tests that can detect a change."""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from types import CodeType

from tests.mutations.change_kinds import Change, changes_behaviour, list_changes
from tests.mutations.mutation import ROOT
from tests.mutations.recording import Recording, Test

_MAX_LINE_TESTS = 5  # Maximum number of tests for each line that only some tests reach.
_MAX_NAMING_FILES = 10  # The search ignores a name that more test files contain.
# Maximum duration of a fast test in seconds, and maximum number of fast tests.
_QUICK_SECONDS, _QUICK_COUNT = 0.02, 300
_PORTION_SECONDS = 5.0  # Duration in seconds after which a portion of tests ends.
_OVERHEAD = 0.01  # Seconds that pytest needs for each test in addition to the duration of the test.
# Factor of the cost of a test that tests neither the changed file nor its package.
_OTHER_SUBJECT_FACTOR = 20
# Package -> test folder. For other packages, the folder has the name of the package. For top-level
# modules, the folder is `api`.
_TEST_FOLDERS = {
    "_encryption": "encryption",
    "_server_facts": "unit",
    "_stand_in": "libraries",
    "_telemetry": "telemetry",
    "engines": "api",
    "events": "unit",
    "gridfs": "api",
    "monitoring": "unit",
    "operations": "api",
    "options": "unit",
    "wire": "tls",
}
# Tests that read the source code or the docstrings of all files, and may therefore detect a change of any file.
_SOURCE_CODE_TESTS = (
    "tests/unit/test_documentation.py::test_public_docstrings_describe_all_parameters",
    "tests/unit/test_public_api.py::test_public_names_and_parameters_match_record",
    "tests/unit/test_source_rules.py::test_raise_in_exception_handler_has_from_clause",
    "tests/unit/test_source_rules.py::test_overloads_have_parameter_defaults_of_implementation",
)
# Tests that compare the defaults of all functions, and all public constants, with PyMongo.
_COMPARISONS = (
    "tests/differential/test_attributes.py::test_arguments_have_defaults_of_pymongo",
    "tests/differential/test_attributes.py::test_constants_equal_constants_of_pymongo",
)
_MAX_SECONDS = 8.0  # Maximum duration of a chosen test in seconds.
# If fewer tests reach a line, all tests of its package may detect a change. The line may run on import, or only once
# because of a cache.
_FEW_TESTS = 20
_MODULE_TEST_FILES = ("tests/unit/test_value_classes.py", "tests/unit/test_numbers.py")


@dataclass(frozen=True)
class RandomChange:
    """A change that replaces complete lines. `line` is the number of the first changed line.

    `apply` searches a file for the text of the old lines, because the file may have been edited.
    """

    file: str
    line: int
    kind: str
    old: str
    new: str

    @property
    def package(self) -> str:
        """Return the package of the file, or ``api`` for a top-level module."""
        return self.file.partition("/")[0] if "/" in self.file else "api"

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} ({self.kind})"

    def apply(self, source: str) -> str | None:
        """Return a copy of `source` that has the change, or None if `source` does not contain the
        lines `old`.

        If the lines occur several times, change the occurrence that is nearest to `line`.
        """
        lines, old = source.splitlines(keepends=True), self.old.splitlines(keepends=True)
        places = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
        if not places:
            return None
        at = min(places, key=lambda place: abs(place + 1 - self.line))
        return "".join([*lines[:at], self.new, *lines[at + len(old) :]])


def files(names: Iterable[str] = ()) -> list[str]:
    """Return the paths of all files of gmongo, or only of the given files and packages.

    :raises ValueError: a name is unknown.
    """
    paths = sorted(str(path.relative_to(ROOT / "gmongo")) for path in (ROOT / "gmongo").rglob("*.py"))
    chosen_files: set[str] = set()
    for name in names:
        matches = {
            file for file in paths if file == name or file.startswith(name + "/") or (name == "api" and "/" not in file)
        }
        if not matches:
            raise ValueError(f"there is no package or file {name!r} below gmongo")
        chosen_files |= matches
    return sorted(chosen_files) if chosen_files else paths


def draw_changes(sources: Mapping[str, str], count: int, seed: int) -> list[RandomChange]:
    """Return random changes. A draw selects a random line, then a kind of change, and then a change
    of this kind.

    :param sources: the source code of each file.
    """
    generator = random.Random(seed)
    by_line: dict[tuple[str, int], dict[str, list[Change]]] = {}
    for file, source in sources.items():
        for change in list_changes(file, source):
            by_line.setdefault((file, change.line), {}).setdefault(change.kind, []).append(change)
    lines = sorted(by_line)
    count = min(count, len(lines))
    bounds = [len(lines) * number // count for number in range(count + 1)] if count else []
    result = []
    for first, beyond in pairwise(bounds):
        for place in generator.sample(lines[first:beyond], beyond - first):
            if random_change := _random_change(by_line[place], sources[place[0]], generator):
                result.append(random_change)
                break
    return result


def _random_change(kinds: Mapping[str, Sequence[Change]], source: str, generator: random.Random) -> RandomChange | None:
    """Return a random change of one line, or None if no possible change of this line has an
    effect.
    """
    for kind in generator.sample(sorted(kinds), len(kinds)):
        for change in generator.sample(kinds[kind], len(kinds[kind])):
            if changes_behaviour(change, source):
                return _whole_lines(change, source)
    return None


def _whole_lines(change: Change, source: str) -> RandomChange:
    data = source.encode()
    start = data.rfind(b"\n", 0, change.start) + 1
    end = data.find(b"\n", change.end) + 1 or len(data)
    new = data[start : change.start] + change.new.encode() + data[change.end : end]
    return RandomChange(change.file, change.line, change.kind, data[start:end].decode(), new.decode())


def choose_tests(recording: Recording, random_change: RandomChange, seconds: float) -> tuple[list[str], int]:
    """Return the tests to run for a change, and the number of tests that may detect the change.

    The first tests are tests that read all source code or all docstrings. Fast tests follow, sorted by their cost. For
    each line of the changed function or class that only some tests reach, a few of these tests follow.
    If no line is reached by only some tests, tests in files that import the module follow instead. The
    other tests that reach the changed line are at the end, beginning with the cheapest test of each
    function.

    :param seconds: the maximum total duration of the returned tests.
    """
    tests_of_line = _reaching_tests(recording, random_change)
    order = _sorted_with_cheapest_of_functions_first(tests_of_line, random_change.file)
    lines = sorted(
        _lines_of_definition_around(random_change.file, random_change.line),
        key=lambda line: abs(line - random_change.line),
    )
    at_lines = (tests_of_line.intersection(recording.tests_of_line(random_change.file, line)) for line in lines)
    rare = [
        test
        for found in at_lines
        if len(found) < len(tests_of_line)
        for test in _sorted_with_cheapest_of_functions_first(found, random_change.file)[:_MAX_LINE_TESTS]
    ]
    if not rare:
        rare = [
            test
            for files in (
                _test_files_that_name(random_change),
                _MODULE_TEST_FILES,
                _test_files_that_import(random_change.file),
            )
            for test in _sorted_with_cheapest_of_functions_first(
                (test for test in tests_of_line if test.name.partition("::")[0] in files),
                random_change.file,
            )
        ]
    names = _SOURCE_CODE_TESTS
    if not _is_in_function(random_change.file, random_change.line):
        names += _COMPARISONS
    text = [found for name in names if (found := recording.tests.get(name))]
    quick = [test for test in _sorted_by_cost(tests_of_line, random_change.file) if test.seconds < _QUICK_SECONDS][
        :_QUICK_COUNT
    ]
    return list(_limit_duration(dict.fromkeys([*text, *quick, *rare, *order]), seconds)), len(tests_of_line.union(text))


def _limit_duration(tests: Iterable[Test], seconds: float) -> Iterator[str]:
    """Yield the names of tests in portions. Omit tests that exceed `_MAX_SECONDS` or the time left.

    In each portion, the tests of a file are consecutive, because these tests share fixtures.
    """
    remaining_seconds, portion, portion_seconds = seconds, dict[str, list[str]](), 0.0
    for test in tests:
        if test.seconds > min(remaining_seconds, _MAX_SECONDS):
            continue
        remaining_seconds -= test.seconds + 0.003
        portion_seconds += test.seconds
        portion.setdefault(test.name.partition("::")[0], []).append(test.name)
        if portion_seconds > _PORTION_SECONDS:
            yield from chain.from_iterable(portion.values())
            portion, portion_seconds = {}, 0.0
    yield from chain.from_iterable(portion.values())


def _sorted_by_cost(tests: Iterable[Test], file: str) -> list[Test]:
    """Return the tests sorted by cost.

    The cost is low if a test is fast, reaches few lines, and tests the changed file or its package.
    """

    def cost(test: Test) -> tuple[float, str]:
        is_own = _is_test_of(test.name.partition("::")[0], file)
        return (test.seconds + _OVERHEAD) * (50 + test.line_count) * (1 if is_own else _OTHER_SUBJECT_FACTOR), test.name

    return sorted(tests, key=cost)


def _sorted_with_cheapest_of_functions_first(tests: Iterable[Test], file: str) -> list[Test]:
    """Return the cheapest test of each test function, then the second cheapest test of each function,
    and so on.
    """
    function_counts: Counter[str] = Counter()
    rounds = []
    for test in _sorted_by_cost(tests, file):
        function = test.name.partition("[")[0]
        rounds.append((function_counts[function], len(rounds), test))
        function_counts[function] += 1
    return [test for _, _, test in sorted(rounds)]


def _is_test_of(path: str, file: str) -> bool:
    """Return True if the test file `path` is in the test folder for the package of `file`, or
    imports the module `file`.
    """
    package = file.partition("/")[0] if "/" in file else "api"
    return path.startswith(f"tests/{_TEST_FOLDERS.get(package, package)}/") or path in _test_files_that_import(file)


def _reaching_tests(recording: Recording, random_change: RandomChange) -> set[Test]:
    if _is_in_function(random_change.file, random_change.line) and (
        tests_of_line := recording.tests_of_line(
            random_change.file, _traced_line(random_change.file, random_change.line)
        )
    ):
        if len(tests_of_line) >= _FEW_TESTS:
            return set(tests_of_line)
        others = recording.tests.values()
        return {
            *tests_of_line,
            *(each for each in others if _is_test_of(each.name.partition("::")[0], random_change.file)),
        }
    lines, names = _related_lines_and_names(random_change.file, random_change.line)
    tests = {test for line in lines for test in recording.tests_of_line(random_change.file, line)}
    if tests and lines:
        # The line is in a function head, or the tracer does not report the line. The tests that run
        # the function body or the statement may detect the change.
        return tests
    # A test may use an object that the line creates on import, although the test does not run the
    # line.
    if names:
        importing_files = {
            *_test_files_that_import(random_change.file),
            *_MODULE_TEST_FILES,
            *_test_files_that_name(random_change),
        }
        tests.update(test for test in recording.tests.values() if test.name.partition("::")[0] in importing_files)
    # The line runs on import, so all tests of code that uses the assigned name may detect the change.
    for name in names:
        for file, line in _places_that_use(name):
            if _is_in_function(file, line):
                tests.update(recording.tests_of_line(file, line))
    return tests or (set(recording.tests_of_file(random_change.file)) if names else set())


@cache
def _syntax_tree(file: str) -> ast.Module:
    return ast.parse((ROOT / "gmongo" / file).read_text("utf-8"))


@cache
def _traced_lines(file: str) -> frozenset[int]:
    """Return the lines that a tracer can report.

    A tracer never reports a line without bytecode instructions, such as a line with only `else:`.
    """

    def lines(code: CodeType) -> Iterator[int]:
        yield from (line for *_, line in code.co_lines() if line)
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield from lines(inner)

    return frozenset(lines(compile((ROOT / "gmongo" / file).read_text("utf-8"), file, "exec", dont_inherit=True)))


def _traced_line(file: str, line: int) -> int:
    """Return the last line, up to and including `line`, that a tracer can report."""
    return max((each for each in _traced_lines(file) if each <= line), default=line)


@cache
def _lines_of_definition_around(file: str, line: int) -> range:
    ranges = [
        range(node.lineno, (node.end_lineno or 0) + 1)
        for node in ast.walk(_syntax_tree(file))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return min(ranges, key=len, default=range(0))


@cache
def _is_in_function(file: str, line: int) -> bool:
    return any(
        isinstance(node, (ast.FunctionDef, ast.Lambda)) and _first_body_line(node) <= line <= (node.end_lineno or 0)
        for node in ast.walk(_syntax_tree(file))
    )


def _first_body_line(node: ast.FunctionDef | ast.Lambda) -> int:
    return node.body[0].lineno if isinstance(node, ast.FunctionDef) else node.body.lineno


def _related_lines_and_names(file: str, line: int) -> tuple[range, list[str]]:
    """Return lines whose tests may detect a change of `line`, and the names that `line` defines.

    Function heads give the lines of the body. Other lines outside functions give only names.
    """
    statement = _innermost_statement(_syntax_tree(file), line)
    if isinstance(statement, ast.FunctionDef):
        return range(statement.body[0].lineno, (statement.end_lineno or 0) + 1), [statement.name]
    if statement is None:
        return range(line, line + 1), []
    body = getattr(statement, "body", None)
    lines = range(statement.lineno, body[0].lineno if body else (statement.end_lineno or line) + 1)
    if _is_in_function(file, line):
        return lines, []
    if isinstance(statement, ast.ClassDef):
        return range(0), [statement.name]
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", statement)]
    if isinstance(targets[0], ast.Tuple):
        targets = targets[0].elts
    return range(0), [found.group() for each in targets if (found := re.match(r"\w+", ast.unparse(each)))]


def _innermost_statement(node: ast.AST, line: int) -> ast.stmt | None:
    for child in ast.iter_child_nodes(node):
        first = (
            min([child.lineno, *(each.lineno for each in getattr(child, "decorator_list", ()))])
            if hasattr(child, "lineno")
            else 0
        )
        if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)) and (
            not first or first <= line <= (getattr(child, "end_lineno", None) or line)
        ):
            if inner := _innermost_statement(child, line):
                return inner
            if isinstance(child, ast.stmt):
                return child
    return None


@cache
def _test_files_that_import(file: str) -> frozenset[str]:
    package, _, name = f"gmongo/{file}".removesuffix(".py").removesuffix("/__init__").replace("/", ".").rpartition(".")
    package, name = re.escape(package), re.escape(name)
    pattern = re.compile(rf"\b{package}\.{name}\b|from {package} import (\(\s*)?(\w+( as \w+)?,\s*)*{name}\b")
    return frozenset(
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if pattern.search(path.read_text("utf-8"))
    )


@cache
def _test_files_that_name(random_change: RandomChange) -> frozenset[str]:
    """Return the test files that contain a name that the changed line defines, unless many files contain the name."""
    _, names = _related_lines_and_names(random_change.file, random_change.line)
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b" if names else "(?!)")
    paths = (path for suffix in ("py", "jsonl") for path in (ROOT / "tests").rglob(f"test_*.{suffix}"))
    found = [path for path in paths if pattern.search(path.read_text("utf-8"))]
    return frozenset(str(path.relative_to(ROOT).with_suffix(".py")) for path in found if len(found) < _MAX_NAMING_FILES)


@cache
def _places_that_use(name: str) -> list[tuple[str, int]]:
    """Return the file and line of each use of a name."""
    pattern = re.compile(rf"\b{re.escape(name)}\b")
    return [
        (file, number)
        for file in files()
        for number, line in enumerate((ROOT / "gmongo" / file).read_text("utf-8").splitlines(), 1)
        if pattern.search(line)
    ]

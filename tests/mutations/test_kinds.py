"""What is changed at random places: every kind finds its places, and no place is of text that does not run."""

from __future__ import annotations

import pytest

from tests.mutations.kinds import KINDS, changes, differs


def made(source: str, kind: str) -> set[str]:
    """What the changes of a kind make of a text."""
    return {
        change.apply(source)
        for change in changes("example.py", source)
        if change.kind == kind and differs(change, source)
    }


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("comparison", "a < b", {"(a <= b)", "(a >= b)"}),
        ("comparison", "a in b", {"(a not in b)"}),
        ("number", "x = 5", {"x = 6", "x = 4"}),
        ("number", "x = 0", {"x = 1"}),
        ("number", "x = 0.5", {"x = 1.0", "x = 0.0"}),
        ("flag", "f(True)", {"f(False)"}),
        ("name", "d['$db']", {"d['$dbX']"}),
        ("name", "f('it is not so')", set()),
        (
            "condition",
            "x = a if b else c",
            {"x = a if (not (b)) else c", "x = a if True else c", "x = a if False else c"},
        ),
        ("condition", "while f(): pass", {"while False: pass"}),
        ("condition", "[x for x in y if x]", {"[x for x in y if True]"}),
        ("and, or", "a and b", {"((a) or (b))", "((a))", "((b))"}),
        ("and, or", "not a", {"(a)"}),
        ("arithmetic", "a + b", {"(a - b)", "(a)", "(b)"}),
        ("arithmetic", "a += b", {"a -= b", "a = b"}),
        ("arithmetic", "'é' + b", {"('é')", "(b)"}),
        ("statement", "f()", {"pass"}),
        ("statement", "a.b = c", {"pass"}),
        ("statement", "raise E", {"pass"}),
        ("result", "def f(): return g()", {"def f(): return None"}),
        ("loop", "for a in b: c", {"for a in (): c", "for a in list(b)[:1]: c", "for a in list(b)[1:]: c"}),
        ("cleanup", "try: a\nfinally: b()", {"try: a\nfinally: pass"}),
        ("cleanup", "try: a\nexcept E: b()", {"try: a\nexcept E: raise", "try: a\nexcept (): b()"}),
        ("cleanup", "try: a\nexcept (D, E): raise", {"try: a\nexcept (E,): raise", "try: a\nexcept (D,): raise"}),
        ("cleanup", "try: a\nexcept BaseException: raise", {"try: a\nexcept Exception: raise"}),
        ("exception", "raise E('x') from e", {"raise ArithmeticError(E('x')) from e", "raise E('x')"}),
        ("argument", "f(a, b, c=d)", {"f(a, c=d)", "f(a, b)"}),
        ("argument", "x = min(a, b)", {"x = min(a)", "x = max(a, b)"}),
        ("slice", "a[1:n]", {"a[:n]", "a[1:]"}),
    ],
)
def test_what_a_kind_makes(kind: str, source: str, expected: set[str]) -> None:
    assert made(source, kind) == expected
    assert kind in KINDS


@pytest.mark.parametrize(
    "source",
    [
        '"""word"""',
        "def f(a: 'name' = None, *b: 1) -> 'name': ...",
        "a: 'int'",
        "import a",
        "__all__ = ['name']",
        "if TYPE_CHECKING:\n    import a\n    b = 1 < 2",
        "T = TypeVar('T')",
        "Either: TypeAlias = A | B",
        "done = os.kill(process, 0)",
    ],
)
def test_what_does_not_run_or_must_not_is_left_alone(source: str) -> None:
    assert changes("example.py", source) == []


def test_what_compiles_to_the_same_makes_no_difference() -> None:
    source = "def f():\n    while 1: pass\n"
    same = [change for change in changes("example.py", source) if change.new == "2"]
    assert same and not any(differs(change, source) for change in same)

"""Changes are drawn by seed and evenly; tests are chosen that see them, the cheapest first; nothing else is proof."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.mutations import __main__, drawing, drawn, named, trials
from tests.mutations.drawing import Drawn, choose, draw, files
from tests.mutations.mutation import ROOT, Mutation
from tests.mutations.recording import Recording, Test, brought_up_to_date, carried_over
from tests.mutations.trials import NotRun, Outcome

SOURCES = {
    name: f"def f(a):\n    b = 'ä{name}' if a > 1 else 2\n" + "    g(a)\n" * 20 for name in ("a.py", "cmap/b.py")
}


def test_a_draw_is_that_of_its_seed() -> None:
    assert draw(SOURCES, 10, 1) == draw(SOURCES, 10, 1) != draw(SOURCES, 10, 2)


def test_a_draw_is_spread_over_the_lines() -> None:
    lines = [(each.file, each.line) for each in draw(SOURCES, 14, 3)]
    assert len(set(lines)) == 14
    assert sum(file == "a.py" for file, _ in lines) == 7
    assert len(draw(SOURCES, 1000, 3)) == 42


def test_a_change_is_found_again_when_the_file_has_changed_elsewhere() -> None:
    for each in draw(SOURCES, 42, 4):
        before = SOURCES[each.file]
        after = each.apply("import this\n" + before)
        assert after is not None and after.startswith("import this\ndef") and after != "import this\n" + before
        assert each.apply("nothing of it") is None


def test_lines_are_carried_over() -> None:
    assert carried_over("a\nb\nc\n", "new\na\nc\n") == {1: 2, 3: 3}


def test_what_reaches_the_lines_around_reaches_a_line_that_is_new() -> None:
    reached = {1: {"", "head"}, 2: {"one"}, 4: {"two"}}
    now = brought_up_to_date(
        reached, "def f():\n    a\n    b\n    c\n", "def f():\n    x\n    a\n    y\n    z\n    c\n"
    )
    assert now == {1: {"", "head"}, 2: {"head", "one"}, 3: {"one"}, 4: {"one", "two"}, 5: {"one", "two"}, 6: {"two"}}
    assert brought_up_to_date({}, "", "a\nb\n") == {1: set(), 2: set()}


def recording(tests: list[Test], monkeypatch: pytest.MonkeyPatch) -> Recording:
    result = Recording({test.name: test for test in tests})
    monkeypatch.setattr(result, "reaching", lambda file, line: sorted(tests))
    return result


def a_line_of_a_function() -> Drawn:
    source = (ROOT / "gmongo/wire/tls.py").read_text("utf-8").splitlines()
    return Drawn("wire/tls.py", 1 + source.index("            sent = self._try_to_send(data)"), "", "", "")


def test_the_cheapest_test_of_each_function_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [
        Test(0.3, 10, "x.py::a[1]"),
        Test(0.1, 10, "x.py::a[2]"),
        Test(0.2, 10, "y.py::b"),
        Test(9.0, 1, "y.py::long"),
    ]
    known = recording(tests, monkeypatch)
    assert choose(known, a_line_of_a_function(), 0.4) == (["x.py::a[2]", "y.py::b"], 4)
    assert choose(known, a_line_of_a_function(), 60) == (["x.py::a[2]", "x.py::a[1]", "y.py::b"], 4)


def test_tests_of_a_branch_nearby_come_before_cheaper_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    branch, cheap = Test(0.2, 10, "x.py::branch"), Test(0.1, 10, "y.py::cheap")
    drawn = a_line_of_a_function()
    known = Recording({test.name: test for test in (branch, cheap)})
    lines = {drawn.line: [branch, cheap], drawn.line + 2: [branch]}
    monkeypatch.setattr(known, "reaching", lambda file, line: lines.get(line, []))
    assert choose(known, drawn, 0.25) == (["x.py::branch"], 2)


def test_a_line_that_no_tracer_sees_is_reached_by_what_reaches_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    source = (ROOT / "gmongo/cmap/metadata.py").read_text("utf-8").splitlines()
    line = 1 + next(number for number, text in enumerate(source) if text.strip() == "continue")
    test = Test(0.1, 10, "x.py::a")
    known = Recording({test.name: test})
    monkeypatch.setattr(known, "reaching", lambda file, at: [test] if at == line - 1 else [])
    seen = line in drawing._traced_lines("cmap/metadata.py")  # as Pythons differ
    assert choose(known, Drawn("cmap/metadata.py", line, "", "", ""), 1) == (([], 0) if seen else (["x.py::a"], 1))


def test_of_two_that_take_as_long_the_one_that_reaches_less_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    known = recording([Test(0.1, 3000, "x.py::wide"), Test(0.1, 20, "y.py::narrow")], monkeypatch)
    assert choose(known, a_line_of_a_function(), 0.15) == (["y.py::narrow"], 2)


def test_tests_of_the_package_come_before_cheaper_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    known = recording(
        [Test(0.2, 10, "tests/tls/test_x.py::own"), Test(0.1, 10, "tests/api/test_y.py::other")], monkeypatch
    )
    assert choose(known, a_line_of_a_function(), 0.25) == (["tests/tls/test_x.py::own"], 2)


def test_quick_tests_come_before_those_of_a_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    branch, quick = Test(0.2, 10, "x.py::branch"), Test(0.01, 10, "y.py::quick")
    drawn = a_line_of_a_function()
    known = Recording({test.name: test for test in (branch, quick)})
    lines = {drawn.line: [branch, quick], drawn.line + 2: [branch]}
    monkeypatch.setattr(known, "reaching", lambda file, line: lines.get(line, []))
    assert choose(known, drawn, 0.25) == (["y.py::quick", "x.py::branch"], 2)


def test_a_test_of_the_files_text_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "tests/unit/test_causes.py::test_error_raised_in_handler_names_its_cause"
    known = recording([Test(0.1, 10, "tests/tls/test_x.py::own")], monkeypatch)
    known.tests[text] = Test(0.2, 0, text)
    assert choose(known, a_line_of_a_function(), 1) == ([text, "tests/tls/test_x.py::own"], 2)


def test_the_defaults_of_arguments_are_read_off_the_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default is none of the lines that run, but for the import."""
    defaults = "tests/differential/test_attributes.py::test_arguments_have_pymongos_defaults"
    known = recording([Test(0.1, 10, "tests/api/test_x.py::own")], monkeypatch)
    known.tests[defaults] = Test(0.2, 0, defaults)
    source = (ROOT / "gmongo/encryption_options.py").read_text("utf-8").splitlines()
    line = 1 + source.index('        mongocryptd_spawn_path: str = "mongocryptd",')
    assert choose(known, Drawn("encryption_options.py", line, "", "", ""), 1)[0][0] == defaults
    assert defaults not in choose(known, a_line_of_a_function(), 1)[0]


def test_within_a_portion_of_time_the_tests_of_a_file_are_together(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [Test(0.6 + n / 100, 10, f"{'xy'[n % 2]}.py::{n}") for n in range(16)]
    chosen, _ = choose(recording(tests, monkeypatch), a_line_of_a_function(), 60)
    first, second = ([f"{'xy'[n % 2]}.py::{n}" for n in range(8 * half, 8 * half + 8)] for half in (0, 1))
    assert chosen == [*first[::2], *first[1::2], *second[::2], *second[1::2]]


@pytest.mark.parametrize("only", [["wire"], ["wire/tls.py"], ["api"]])
def test_files_are_chosen_by_package(only: list[str]) -> None:
    chosen = files(only)
    assert chosen and set(chosen) < set(files())


@pytest.mark.parametrize("arguments", [["--only", "nosuch"], ["--random", "3", "--only", "nosuch"]])
def test_a_name_of_nothing_is_refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mutations", *arguments])
    assert __main__.main() == 2
    assert "nosuch" in capsys.readouterr().err


# What counts as a kill


@pytest.mark.parametrize(
    ("code", "story", "output", "expected"),
    [
        (0, ["begun a", "ended a"], "", Outcome()),
        (1, ["begun a", "failed a", "ended a"], "", Outcome("a")),
        (1, ["begun a", "ended a", "begun b"], "", Outcome("b", timed_out=True)),
        (1, [], "ERROR collecting", Outcome("(not even imported)")),
        (2, [], "", Outcome("(not even imported)")),
        (4, [], "ImportError while loading conftest", Outcome("(not even imported)")),
        (5, [], "", Outcome()),
    ],
)
def test_the_outcome_of_a_run(code: int, story: list[str], output: str, expected: Outcome) -> None:
    assert trials.outcome_of(code, story, output) == expected


def test_a_run_that_pytest_refuses_is_no_kill() -> None:
    with pytest.raises(NotRun, match="file not found"):
        trials.outcome_of(4, [], "file not found")


@pytest.mark.parametrize(
    ("alone", "expected"),
    [
        (Outcome("x.py::slow", timed_out=True), Outcome("x.py::slow", timed_out=True)),
        (Outcome("x.py::slow"), Outcome("x.py::slow")),
        (Outcome(), Outcome("x.py::later")),
    ],
)
def test_a_time_out_is_a_kill_if_it_repeats_alone(
    alone: Outcome, expected: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(root: Path, targets: list[str], wanted: list[str], skipped: list[str]) -> Outcome:
        if wanted == ["x.py::slow"]:
            return alone
        return Outcome("x.py::later") if skipped == ["x.py::slow"] else Outcome("x.py::slow", timed_out=True)

    monkeypatch.setattr(trials, "_run", run)
    assert trials.first_failure(Path(), ["x.py"]) == expected


def test_the_plug_in_takes_what_is_wanted_in_that_order(tmp_path: Path) -> None:
    (tmp_path / "wanted").write_text("b\na\nnot c", "utf-8")
    plugin = trials._Plugin(str(tmp_path / "story"), str(tmp_path / "wanted"))
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in "abcd"]
    plugin.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["b", "a"]


# Rows that cannot be tried


def row(**changed: Any) -> Mutation:
    fields = {
        "name": "x1",
        "what": "",
        "file": "wire/tls.py",
        "old": "_CHUNK_SIZE = 64 * 1024\n",
        "new": "",
        "tests": "unit/test_reply",
    }
    return Mutation(**{**fields, **changed})


@pytest.mark.parametrize(
    "broken",
    [row(old="no such text"), row(file="no_such_file.py"), row(tests="NO-1"), row(new="(")],
    ids=["anchor", "file", "requirement", "syntax"],
)
def test_a_row_that_does_not_fit_is_not_tried_and_ends_nothing(broken: Mutation, tmp_path: Path) -> None:
    path = tmp_path / "gmongo/wire/tls.py"
    path.parent.mkdir(parents=True)
    path.write_text((ROOT / "gmongo/wire/tls.py").read_text("utf-8"), "utf-8")
    trial = named.attempt("wire", broken, tmp_path, True, frozenset())
    assert trial.outcome == named.NOT_TRIED
    assert path.read_text("utf-8") == (ROOT / "gmongo/wire/tls.py").read_text("utf-8")
    assert "| all | 1 | 0 | 0 | 0 | 1 |" in named.report([trial])


def test_tests_that_are_red_without_a_mutation_prove_nothing(tmp_path: Path) -> None:
    trial = named.attempt("wire", row(), tmp_path, True, frozenset(["tests/unit/test_reply.py"]))
    assert trial.outcome == named.NOT_TRIED and "tests/unit/test_reply.py" in trial.why


def test_the_report_counts_by_package_and_shows_the_survivors() -> None:
    survivor = Drawn("cmap/pool.py", 7, "flag", "  a = True\n", "  a = False\n")
    counted = [
        drawn.Trial(Drawn("wire/tls.py", 1, "", "", ""), drawn.KILLED, "x.py::a", 1.0),
        drawn.Trial(survivor, drawn.SURVIVED, "2 of the 3 tests that reach it", 1.0),
    ]
    text = drawn.report(counted)
    assert "| cmap | 1 | 0 | 1 | 0 | 0 | 0 |" in text and "| all | 2 | 1 | 1 | 0 | 0 | 50 |" in text
    assert "cmap/pool.py:7 (flag): survived 2 of the 3 tests that reach it\n-  a = True\n+  a = False" in text


def test_a_constant_beside_another_is_seen_by_what_uses_it() -> None:
    source = (ROOT / "gmongo/_encryption/kms.py").read_text("utf-8").splitlines()
    line = 1 + next(number for number, text in enumerate(source) if text.startswith("_PORT, _KMIP_PORT ="))
    assert drawing._place("_encryption/kms.py", line) == (range(0), ["_PORT", "_KMIP_PORT"])


def test_quick_tests_of_one_function_come_before_slower_ones_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [Test(0.01, 10, f"tests/tls/test_x.py::rows[{n}]") for n in range(5)]
    slower = Test(0.1, 10, "tests/tls/test_y.py::other")
    chosen, _ = choose(recording([slower, *quick], monkeypatch), a_line_of_a_function(), 60)
    assert chosen == [*(test.name for test in quick), slower.name]


def test_a_package_has_its_folder_of_tests() -> None:
    for file in files():
        package = Drawn(file, 1, "", "", "").package
        if package not in ("testing", "api"):
            assert (ROOT / "tests" / drawing._TESTS_OF.get(package, package)).is_dir(), package
    assert drawing._is_about("tests/api/test_x.py", "collection.py")
    assert not drawing._is_about("tests/api/test_x.py", "cmap/pool.py")

"""The audit finds commands that are not in API version 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest

from gmongo.errors import OperationFailure
from gmongo.monitoring import CommandStartedEvent
from gmongo.server_api import ServerApi
from gmongo.stable_api import Audit, Remark, Verdict
from gmongo.stable_api.audit import _call_location, show, write
from gmongo.stable_api.facts import ADVICE, ALIASES, COMMANDS, DEPRECATED_COMMANDS
from gmongo.stable_api.rules import remarks_on
from gmongo.testing import Deployment
from tests.support.cases import with_cases

ROOT = Path(__file__).parents[2]
THIS_FILE = "tests/stable_api/test_audit.py"
PROGRAM = """
import sys
from gmongo import MongoClient
from gmongo.testing import Deployment

with Deployment.standalone() as deployment, MongoClient(deployment.uri) as client:
    client.db.c.insert_one({"_id": 1})
    for _ in range(3):
        client.db.c.distinct("_id")
print("arguments:", sys.argv[1:])
"""


def remark_texts(name: str, command: dict[str, Any]) -> list[str]:
    """Return the remarks of the audit on a command, each as the verdict and the part of the
    command.
    """
    return [f"{remark.verdict.name} {remark.part}".strip() for remark in remarks_on(name, command)]


@with_cases
def test_audit_reports_unstable_parts_of_command(command: dict[str, Any], expected: list[str]) -> None:
    assert remark_texts(next(iter(command)), command) == expected


@with_cases
def test_audit_reports_unstable_parts_of_pipeline(pipeline: Any, expected: list[str]) -> None:
    assert remark_texts("aggregate", {"aggregate": "c", "pipeline": pipeline, "cursor": {}}) == expected


@with_cases
def test_audit_reports_unstable_parts_of_index(index: dict[str, Any], expected: list[str]) -> None:
    assert remark_texts("createIndexes", {"createIndexes": "c", "indexes": [index]}) == expected


def malformed_copies(value: Any) -> Iterator[Any]:
    """Yield copies of a part of a command. Each copy is malformed in one place."""
    yield from (None, 5, "text", [5], {"x": [None]}, {}, [])
    if isinstance(value, dict):
        for name, each in value.items():
            yield from ({**value, name: other} for other in malformed_copies(each))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in malformed_copies(each))


@with_cases
def test_malformed_command_raises_no_error_in_the_audit(command: dict[str, Any]) -> None:
    name, *fields = command
    assert [remark for remark in remark_texts(name, command) if "NEWER" not in remark] == []
    for field in [name] if name == "explain" else fields:
        for value in malformed_copies(command[field]):
            remark_texts(name, {**command, field: value})


def test_remark_on_each_command_alias_has_advice() -> None:
    for names, advice in (
        ("collStats", "use aggregate with {$collStats: {count: {}}}"),
        ("distinct", "use aggregate with $group"),
        ("isMaster ismaster", "use hello"),
        ("mapReduce mapreduce", "use aggregate"),
    ):
        for name in names.split():
            (remark,) = remarks_on(name, {name: 1})
            assert (remark.verdict, remark.command) == (Verdict.OUTSIDE, name)
            assert remark.advice.startswith(advice)


@with_cases
def test_audit_remark_names_part_and_reason(command: dict[str, Any], remark: tuple[str, str]) -> None:
    name = next(iter(command))
    assert [*remarks_on(name, command)] == [Remark(Verdict.OUTSIDE, name, *remark)]


def test_remark_on_explained_command_names_both_commands() -> None:
    (remark,) = remarks_on("explain", {"explain": {"distinct": "c", "key": "a"}})
    assert remark.command == "explain of distinct"


def test_command_tables_of_audit_are_consistent() -> None:
    assert set(COMMANDS) >= DEPRECATED_COMMANDS
    assert set(ALIASES.values()) <= set(COMMANDS)
    assert not set(ADVICE) & set(COMMANDS)
    assert not [name for name, facts in COMMANDS.items() if facts.inside & facts.outside]


def test_finding_of_audit_has_count_and_first_place(deployment: Deployment, connect: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(ROOT)
    audit = Audit()
    client = connect(deployment, event_listeners=[audit])
    client.db.c.insert_one({})
    for _ in range(3):
        client.db.c.distinct("a")
    line = _line_number('client.db.c.distinct("a")\n')
    client.db.c.distinct("a")
    client.admin.command("buildInfo")
    first, second = audit.findings
    assert (first.remark, first.count, first.place) == (
        Remark(Verdict.OUTSIDE, "distinct", advice="use aggregate with $group"),
        4,
        f"{THIS_FILE}:{line}",
    )
    assert (second.remark.command, second.count) == ("buildInfo", 1)
    assert not audit.is_clean
    report = audit.report()
    assert report.splitlines()[0].startswith("API version 1: 6 commands audited, 2 findings that ServerApi('1'")
    assert f"distinct   4x  {THIS_FILE}:{line}" in report


def _line_number(text: str) -> int:
    """Return the number of the first line of this file that, without indentation, equals the text."""
    lines = Path(__file__).read_text("utf-8").splitlines(keepends=True)
    return next(number for number, each in enumerate(lines, 1) if each.strip() + "\n" == text)


def test_audit_finds_exactly_the_commands_that_strict_server_rejects(deployment: Deployment, connect: Any) -> None:
    actions = [
        lambda db: db.c.distinct("a"),
        lambda db: db.c.create_index("a", sparse=True),
        lambda db: db.create_collection("capped", capped=True, size=4096),
        lambda db: db.c.find({}, return_key=True).to_list(),
        lambda db: db.command("serverStatus"),
        lambda db: db.c.insert_one({}),
        lambda db: db.c.find({}, batch_size=2).to_list(),
        lambda db: db.c.aggregate([{"$indexStats": {}}]).to_list(),
    ]
    strict_client = connect(deployment, server_api=ServerApi("1", strict=True))
    for action in actions:
        audit = Audit()
        client = connect(deployment, server_api=ServerApi("1"), event_listeners=[audit])
        try:
            action(strict_client.db)
            is_rejected = False
        except OperationFailure as error:
            is_rejected = error.code == 323
        action(client.db)
        assert is_rejected is not audit.is_clean


def test_api_error_of_server_is_a_finding_of_audit(deployment: Deployment, connect: Any) -> None:
    audit = Audit()
    client = connect(deployment, server_api=ServerApi("1", True, True), event_listeners=[audit])
    for name in ("testDeprecation", "serverStatus"):
        with pytest.raises(OperationFailure):
            client.admin.command(name)
    refusals = {each.remark.command: each.remark for each in audit.findings if each.remark.verdict is Verdict.REFUSED}
    assert set(refusals) == {"testDeprecation", "serverStatus"}
    assert "is not in API Version 1" in refusals["serverStatus"].advice


def test_audit_records_all_remarks_on_one_command() -> None:
    audit, stages = Audit(), [{"$collStats": {"latencyStats": {}, "storageStats": {}}}, {"$listSessions": {}}]
    audit.started(CommandStartedEvent({"aggregate": "c", "pipeline": stages}, "db", 1, ("h", 1), 1))
    parts = [finding.remark.part for finding in audit.findings]
    assert len(parts) == 3 and "$listSessions" in parts[2]


def test_audit_reads_only_name_of_sensitive_command() -> None:
    audit = Audit()
    event = CommandStartedEvent({"createUser": "ada", "pwd": "secret"}, "admin", 1, ("h", 1), 1)
    event.command = {}
    audit.started(event)
    assert [finding.remark.command for finding in audit.findings] == ["createUser"]
    assert "secret" not in audit.report()


@pytest.mark.parametrize(("location", "command_count"), [("", 0), ("app.py:1", 1)])
def test_audit_ignores_kill_sessions_of_driver(
    location: str, command_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gmongo.stable_api.audit._call_location", lambda: location)
    audit = Audit()
    audit.started(_event("killSessions"))
    assert audit.commands == command_count and audit.is_clean is (command_count == 0)


def _event(name: str, failure: dict[str, Any] | None = None) -> Any:
    """Return a substitute for a command event, with the attributes that the audit reads."""
    return SimpleNamespace(command_name=name, command={name: 1}, failure=failure)


@pytest.fixture
def audit_with_findings(monkeypatch: pytest.MonkeyPatch) -> Audit:
    """Return an audit that has findings with all verdicts except ``UNKNOWN``."""
    monkeypatch.setattr("gmongo.stable_api.audit._call_location", lambda: "app.py:1")
    audit = Audit()
    for name in ("testDeprecation", "count", "buildInfo", "distinct", "distinct", "ping"):
        audit.started(_event(name))
    audit.failed(_event("hello", {"code": 323, "errmsg": "not in API Version 1"}))
    audit.failed(_event("hello", {"code": 11601, "errmsg": "interrupted"}))
    return audit


REPORT = """\
API version 1: 6 commands audited, 4 findings that ServerApi('1', strict=True, deprecation_errors=True) may refuse

not in API version 1:
  distinct   2x  app.py:1  use aggregate with $group
  buildInfo  1x  app.py:1

deprecated in API version 1:
  testDeprecation  1x  app.py:1

refused by the server:
  hello  1x  app.py:1  not in API Version 1

added to API version 1 after MongoDB 5.0.0:
  count  1x  app.py:1  since MongoDB 5.0.9
"""


def test_report_is_written_as_text_to_stderr(audit_with_findings: Audit, capsys: pytest.CaptureFixture[str]) -> None:
    write(audit_with_findings, None, False)
    assert capsys.readouterr() == ("", REPORT)


def test_report_is_written_as_json_to_stderr_and_as_text_to_file(
    audit_with_findings: Audit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(audit_with_findings, None, True)
    assert json.loads(capsys.readouterr().err)["commands"] == 6
    write(audit_with_findings, str(tmp_path / "report"), False)
    assert (tmp_path / "report").read_text("utf-8") == REPORT and capsys.readouterr() == ("", "")


def test_report_of_one_command_is_singular_and_names_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmongo.stable_api.audit._call_location", lambda: "")
    audit = Audit()
    audit.started(CommandStartedEvent({"find": "c", "filter": {"$or": [{"$text": {}}] * 2}}, "db", 1, ("h", 1), 1))
    assert audit.report().startswith("API version 1: 1 command audited, 1 finding that ServerApi(")
    assert audit.report().endswith("  find: operator $text  1x  (the driver)  text indexes are not in API version 1")


@pytest.mark.parametrize("is_clean", [False, True])
def test_audit_report_on_terminal_is_a_table(
    is_clean: bool, audit_with_findings: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    show(Audit() if is_clean else audit_with_findings, terminal)
    text = terminal.getvalue()
    # A report without findings is green. A report with findings is yellow.
    assert text.startswith("\x1b[32m" if is_clean else "\x1b[33m")
    columns = ("what ", "times\x1b", "first used at\x1b")
    words = ("refused by the server", *columns, "distinct", "2x", "app.py:1", "use aggregate with $group", "buildInfo")
    assert all((word in text) is not is_clean for word in words)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    plain = StringIO()
    monkeypatch.setattr(plain, "isatty", lambda: True)
    show(audit_with_findings, plain)
    assert plain.getvalue() == REPORT


def simulated_call_place(*file_names: str) -> str:
    """Simulate a stack of calls. Return the place in the stack that the audit reports.

    :param file_names: the file name of each function in the stack, from the outermost function.
    """
    places: list[str] = []
    namespace: dict[str, Any] = {"call": lambda: None}
    for number, file_name in enumerate(reversed(file_names)):
        statement = "places.append(place())" if number == 0 else "call()"
        new_namespace = {"call": namespace.get("f"), "places": places, "place": _call_location}
        exec(compile(f"\n\ndef f():\n    {statement}", file_name, "exec"), new_namespace)
        namespace = new_namespace
    gevent.spawn(namespace["f"]).get()
    return places[0]


def test_place_of_finding_is_innermost_frame_of_the_application(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    library, driver = f"{sysconfig.get_path('purelib')}/x.py", str(ROOT / "gmongo" / "collection.py")
    other_library = f"{sysconfig.get_path('stdlib')}/y.py"
    app, other_folder = str(tmp_path / "folder" / "app.py"), "/other/app.py"
    assert simulated_call_place(other_folder, app, library, driver) == "folder/app.py:4"
    assert simulated_call_place(app, other_folder, driver, "<frozen runpy>") == "/other/app.py:4"
    assert simulated_call_place(other_library, library, driver) == f"{library}:4"
    assert simulated_call_place("<frozen runpy>", driver) == ""


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gmongo.stable_api", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def app_folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.parametrize("arguments", [["app.py"], ["-m", "app"]], ids=["file", "module"])
def test_program_runs_with_audit_report_on_stderr(arguments: list[str], app_folder: Path) -> None:
    done = run(*arguments, "--port", "1", folder=app_folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "arguments: ['--port', '1']\n"
    assert "distinct  3x  app.py:9  use aggregate with $group" in done.stderr


def test_check_option_of_audit_sets_exit_status(app_folder: Path) -> None:
    assert run("--check", "app.py", folder=app_folder).returncode == 3
    (app_folder / "app.py").write_text(PROGRAM.replace('distinct("_id")', "find_one()"))
    assert run("--check", "app.py", folder=app_folder).returncode == 0


def test_json_report_is_written_to_file(app_folder: Path) -> None:
    done = run("--json", "-o", "report.json", "app.py", folder=app_folder)
    assert done.stderr == ""
    report = json.loads((app_folder / "report.json").read_text())
    assert report["clean"] is False
    assert report["findings"][0] == {
        "verdict": "outside",
        "command": "distinct",
        "part": "",
        "advice": "use aggregate with $group",
        "count": 3,
        "place": "app.py:9",
    }


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("last_statement", "status"),
    [("raise SystemExit(5)", 5), ("raise SystemExit('no more')", 1), ("1 / 0", 1), ("raise SystemExit", 0)],
)
def test_report_is_written_after_any_end_of_the_program(last_statement: str, status: int, app_folder: Path) -> None:
    (app_folder / "app.py").write_text(f"{PROGRAM}\n{last_statement}\n")
    done = run("app.py", folder=app_folder)
    assert done.returncode == status
    assert "distinct  3x  app.py:9" in done.stderr
    if last_statement == "1 / 0":
        assert "ZeroDivisionError" in done.stderr

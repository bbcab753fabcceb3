"""`_run_program` runs a program in this process, with the `sys.argv` and `sys.path` that the command
`python` would set for the program.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import gmongo
from gmongo import _run_program
from gmongo._run_program import run_program
from tests.support.cases import with_cases
from tests.support.programs import run_python

PROGRAM = """
import runpy
import sys
sys.reports.append(([*sys.argv], sys.path[0], __name__, sys.modules["__main__"].__dict__ is globals()))
"""

ReportList = list[tuple[list[str], str, str, bool]]


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ReportList:
    """Return the list to which the test programs append reports. Restore the interpreter's state
    after the test.
    """
    reports: ReportList = []
    monkeypatch.setattr(sys, "reports", reports, raising=False)
    monkeypatch.setattr(sys, "argv", ["before"])
    monkeypatch.setattr(sys, "path", ["the current directory", *sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(gmongo, "__doc__", gmongo.__doc__)
    monkeypatch.chdir(tmp_path)
    return reports


@pytest.mark.parametrize("is_zip_file", [False, True])
def test_folder_or_zip_file_runs_as_main(reports: ReportList, is_zip_file: bool, tmp_path: Path) -> None:
    program = tmp_path / "program"
    if is_zip_file:
        with zipfile.ZipFile(program, "w") as file:
            file.writestr("__main__.py", PROGRAM)
    else:
        program.mkdir()
        (program / "__main__.py").write_text(PROGRAM)
    assert run_program(False, "program", ["a"]) == 0
    assert reports == [(["program", "a"], str(program), "__main__", True)]
    assert "the current directory" not in sys.path


def test_folder_without_main_module_prints_error_of_python(
    reports: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert run_program(False, "empty", []) == 1
    assert capsys.readouterr().err == f"{sys.executable}: can't find '__main__' module in '{tmp_path / 'empty'}'\n"


@pytest.mark.parametrize("name", ["missing_module", "missing.module", "json.missing", "email"])
def test_missing_module_prints_error_of_python(reports: object, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_program(True, name, []) == 1
    assert capsys.readouterr().err == run_python("-m", name).stderr


@pytest.mark.parametrize("statement", ["import missing_module", "import runpy; runpy.run_module('missing_module')"])
def test_import_error_of_module_propagates(reports: object, tmp_path: Path, statement: str) -> None:
    (tmp_path / "app.py").write_text(statement)
    sys.path[0] = str(tmp_path)
    with pytest.raises(ImportError, match="missing_module"):
        run_program(True, "app", [])


def test_program_in_safe_path_mode_keeps_sys_path(
    reports: ReportList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    monkeypatch.setattr(_run_program, "_IS_SAFE_PATH", True)
    assert run_program(False, "app.py", []) == 0
    assert reports[0][1] == "the current directory"


@with_cases
def test_argument_of_sys_exit_becomes_exit_status(
    reports: object,
    tmp_path: Path,
    last_statement: str,
    status: int,
    expected_stderr: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "app.py").write_text(f"import sys\n{last_statement}\n")
    assert run_program(False, "app.py", []) == status
    assert capsys.readouterr() == ("", expected_stderr)


@with_cases
def test_command_prints_usage_on_help_and_wrong_arguments(
    main: Callable[[Sequence[str]], int],
    usage: str,
    option_text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: Any,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ending:
        main(["--help"])
    assert ending.value.code == 0
    output = capsys.readouterr().out
    assert output.startswith(f"usage: {usage}") and option_text in output
    with pytest.raises(SystemExit) as ending:
        main([])
    assert ending.value.code == 2
    assert capsys.readouterr().err.startswith(f"usage: {usage}")

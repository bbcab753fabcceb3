"""Processor instructions, where the machine counts them."""

from __future__ import annotations

import shutil

import pytest

from benchmarks import retired


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that are rough, but come soon."""
    monkeypatch.setattr(retired, "FEW", 200)
    monkeypatch.setattr(retired, "MANY", 1000)
    monkeypatch.setattr(retired, "CONTENDERS", ("gmongo", "floor"))


@pytest.mark.skipif(shutil.which("perf") is None, reason="there is no perf here (Debian has it as linux-perf)")
def test_instructions_of_an_operation(few: None, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        (row,) = retired.survey(["find_one"], 10)
    except SystemExit as refusal:
        pytest.skip(str(refusal))
    assert 1 < row["gmongo"]["user"] / row["floor"]["user"] < 3
    assert row["gmongo"]["kernel"] > 0
    assert sum(row["gmongo"]["shares"].values()) == pytest.approx(1)
    assert row["gmongo"]["shares"]["python"] > 0.5


def test_what_a_worker_does_besides() -> None:
    wanted = retired.Measurement("gmongo", "find_one", 10, 0)
    assert retired._done(wanted, 2000) == 2400


def test_a_machine_that_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retired, "_run", lambda *_: "<not supported>,,instructions:u,0,100.00,,\n")
    with pytest.raises(SystemExit, match="does not count"):
        retired.measure(retired.Measurement("gmongo", "find_one", 10, 0), 1)

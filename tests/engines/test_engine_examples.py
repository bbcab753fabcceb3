"""Run programs of ``examples`` on each engine, a server other than MongoDB's own."""

from __future__ import annotations

import pytest

from tests.support.programs import run_python

from .engine import Server

_MAIN_JOB = ("examples.main_job", "--requests", "60", "--concurrency", "10")


@pytest.mark.parametrize("example", [("examples.quickstart",), _MAIN_JOB], ids=lambda example: example[0])
def test_example_runs_on_engine(server: Server, example: tuple[str, ...]) -> None:
    result = run_python("-m", *example, uri=server.uri)
    assert result.returncode == 0, result.stdout + result.stderr

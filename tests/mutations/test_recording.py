"""Recordings of the lines that tests reach."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.mutations import recording


def test_collection_error_ends_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted_run(*_arguments: object, **_options: object) -> CompletedProcess[bytes]:
        (tmp_path / "out" / "found.json").write_text('{"tests": [], "failed": []}')
        return CompletedProcess([], 2, b"1 error during collection", b"")

    monkeypatch.setattr(recording.subprocess, "run", interrupted_run)
    with pytest.raises(RuntimeError, match="1 error during collection"):
        recording._record(tmp_path / "out", [], {})

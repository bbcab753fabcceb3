"""The driver has one clock, and a test can replace the clock."""

from __future__ import annotations

import re
from pathlib import Path

import gmongo
from gmongo import _clock

ROOT = Path(gmongo.__file__).parent
_ANOTHER_CLOCK = re.compile(r"^\s*(from time import|import time\b)", re.MULTILINE)


def test_only_clock_module_imports_time_module() -> None:
    sources = [path for path in ROOT.rglob("*.py") if "testing" not in path.parts and path != Path(_clock.__file__)]
    assert len(sources) > 100
    assert [str(path) for path in sources if _ANOTHER_CLOCK.search(path.read_text(encoding="utf-8"))] == []

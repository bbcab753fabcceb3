"""The example in the guide does what it says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.encryption import conftest  # noqa: F401  # skips without pymongocrypt

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "encryption.md"


def test_the_example():
    found = re.search(r"<!-- guide -->\n```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    exec(compile(found[1], str(GUIDE), "exec"), {})

"""The example in ``docs/encryption.md`` runs without errors."""

from __future__ import annotations

import re
from pathlib import Path

from tests.encryption import conftest  # noqa: F401  # without pymongocrypt, the import skips the test

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "encryption.md"


def test_example_of_encryption_guide_runs():
    example = re.search(r"<!-- guide -->\n```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert example is not None
    exec(compile(example[1], str(GUIDE), "exec"), {})

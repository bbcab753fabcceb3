"""The example of the documentation: its tests run here too, and what the page quotes is what they are."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("flask")

from examples.flask_failover import test_app
from examples.flask_failover.test_app import *  # noqa: F403

PAGE = Path(test_app.__file__).parents[2] / "docs" / "testing.md"


def test_the_page_quotes_the_example():
    quoted = inspect.getsource(test_app.test_a_step_down_loses_no_order_and_takes_none_twice)
    assert textwrap.dedent(quoted) in PAGE.read_text(encoding="utf-8")

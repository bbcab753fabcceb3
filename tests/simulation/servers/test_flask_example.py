"""Run the tests of the Flask example."""

from __future__ import annotations

import pytest

pytest.importorskip("flask")

from examples.flask_failover.test_app import *  # noqa: F403

"""Run the tests of the Flask example application, which use a simulated deployment."""

from __future__ import annotations

import pytest

pytest.importorskip("flask")

from examples.flask_failover.test_app import *  # noqa: F403

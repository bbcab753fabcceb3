"""Fixture for tests of hosted programs: the deployment that the programs use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gmongo.testing import Deployment


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with Deployment.replica_set(members=1) as deployment:
        yield deployment

"""Official tests in the cmap format, with a real pool whose connections have sockets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.cmap_runner import CmapTest
from tests.spec.specifications import files


@pytest.mark.parametrize("case", files("pool"))
def test_pool_events_equal_official_case(case: dict[str, Any]) -> None:
    CmapTest(case).run()

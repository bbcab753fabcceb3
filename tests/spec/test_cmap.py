"""The official cmap-format tests, on the real pool over real sockets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.cmap_runner import CmapTest
from tests.spec.specifications import files


@pytest.mark.parametrize("case", files("pool"))
def test_cmap_format(case: dict[str, Any]) -> None:
    CmapTest(case).run()

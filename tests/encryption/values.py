"""One value of every BSON type, for tests of encryption."""

from __future__ import annotations

from typing import Any

import bson

from tests.support.cases import rows

_ROWS = rows(__file__, "every BSON type")
EVERY_TYPE = {row["name"]: row["value"] for row in _ROWS}
# Types that libmongocrypt encrypts deterministically.
DETERMINISTIC_TYPES = [row["name"] for row in _ROWS if row["deterministic"]]
# Types that libmongocrypt encrypts with the randomized algorithm.
RANDOM_TYPES = [row["name"] for row in _ROWS if row["randomized"]]


def is_equal_bson(value: Any, other_value: Any) -> bool:
    return bson.encode({"v": value}) == bson.encode({"v": other_value})

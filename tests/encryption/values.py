"""Named BSON values of many types, for tests of encryption."""

from __future__ import annotations

from typing import Any

import bson

from tests.support.cases import rows

_ROWS = rows(__file__, "every BSON type")
BSON_VALUES = {row["name"]: row["value"] for row in _ROWS}
# Names of the values that libmongocrypt encrypts with the deterministic algorithm.
DETERMINISTIC_NAMES = [row["name"] for row in _ROWS if row["deterministic"]]
# Names of the values that libmongocrypt encrypts with the randomized algorithm.
RANDOMIZED_NAMES = [row["name"] for row in _ROWS if row["randomized"]]


def is_equal_bson(value: Any, other_value: Any) -> bool:
    return bson.encode({"v": value}) == bson.encode({"v": other_value})

"""What the cases of expressions share."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .cases import Case, evaluate

MISSING = "<missing>"
DAY = datetime(2020, 1, 1)
RICH = {
    "_id": 1,
    "n": 5,
    "s": "héllo",
    "d": DAY,
    "z": None,
    "a": [1, 2, 3],
    "o": {"x": 1, "y": [{"k": 1}, {"k": 2}, 3]},
}


def rows(operator: str, *pairs: tuple[Any, Any]) -> list[Case]:
    """Cases of one operator: operand and value."""
    source = f"manual: reference/operator/aggregation/{operator[1:]}"
    return [
        Case(f"{operator} {operand!r}"[:90], [RICH], evaluate({operator: operand}), expected, source)
        for operand, expected in pairs
    ]

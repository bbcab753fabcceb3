"""The expression operator ``$meta``, which returns the metadata of a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import Expression, Make, Scope
from gmongo.testing.store.values import MISSING, type_name
from gmongo.testing.unsupported import not_supported

# The metadata that each document has.
_OF_ALL = frozenset(
    {"indexKey", "randVal", "recordId", "sortKey", "timeseriesBucketMaxTime", "timeseriesBucketMinTime"}
)
# The metadata that only results of text searches and geospatial queries have.
_OF_SEARCHES = frozenset(
    {
        "geoNearDistance",
        "geoNearPoint",
        "score",
        "scoreDetails",
        "searchHighlights",
        "searchScore",
        "searchScoreDetails",
        "searchSequenceToken",
        "textScore",
        "vectorSearchScore",
    }
)


def _meta(_name: str, operand: Any, scope: Scope) -> Expression:
    if type(operand) is not str:
        raise location(17307, f"$meta only supports string arguments, not {type_name(operand)}")
    if operand not in _OF_ALL | _OF_SEARCHES:
        raise location(17308, f"Unsupported argument to $meta: {operand}")
    if operand in _OF_ALL:
        raise not_supported("$meta", operand)
    score = scope.score
    if operand != "textScore" or score is None:
        raise location(40218, f"query requires {operand} metadata, but it is not available")

    def run(variables: Mapping[str, Any]) -> Any:
        value = score(variables["ROOT"])
        return MISSING if value is None else value

    return run


OPERATORS: dict[str, Make] = {"$meta": _meta}

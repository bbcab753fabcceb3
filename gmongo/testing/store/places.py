"""What an index of places takes: on the sphere GeoJSON, and the older pairs of coordinates; on a plane those alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.values import MISSING, is_number

# How deep the coordinates of each type are in arrays.
_DEPTHS: Mapping[str, int] = {
    "Point": 0,
    "MultiPoint": 1,
    "LineString": 1,
    "MultiLineString": 2,
    "Polygon": 2,
    "MultiPolygon": 3,
}


def check_place(value: Any) -> None:
    """Check that a value is a place; null and what is missing are none, and are not indexed.

    :raises CommandError: 16755, if it is not.
    """
    if value is MISSING or value is None or value == [] or _is_place(value):
        return
    if isinstance(value, list) and all(map(_is_place, value)):  # several
        return
    raise location(16755, f"Can't extract geo keys: {str(value)[:80]} is no place on the sphere")


def check_flat_place(value: Any, least: float, most: float) -> None:
    """Check that a pair of coordinates, or each of several, is within the bounds of an index of a plane.

    :raises CommandError: 13027, if it is not.
    """
    pair = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(pair, list) or not pair:
        return
    if not is_number(pair[0]):
        for each in pair:
            check_flat_place(each, least, most)
    elif not all(least <= float(str(each)) <= most for each in pair[:2] if is_number(each)):
        raise location(13027, f"point not in interval of [ {least}, {most} ]")


def _is_place(value: Any) -> bool:
    if isinstance(value, list):
        return _is_position(value)
    if not isinstance(value, dict) or not value:
        return False
    if "type" not in value:
        return _is_position(list(value.values()))
    if value["type"] == "GeometryCollection":
        return isinstance(value.get("geometries"), list) and all(map(_is_place, value["geometries"]))
    depth = _DEPTHS.get(value["type"]) if isinstance(value["type"], str) else None
    return depth is not None and _are_positions(value.get("coordinates"), depth)


def _are_positions(value: Any, depth: int) -> bool:
    if not depth:
        return _is_position(value)
    return isinstance(value, list) and bool(value) and all(_are_positions(each, depth - 1) for each in value)


def _is_position(value: Any) -> bool:
    if not isinstance(value, list) or len(value) < 2 or not all(map(is_number, value[:2])):
        return False
    longitude, latitude = (float(str(each)) for each in value[:2])
    return -180 <= longitude <= 180 and -90 <= latitude <= 90

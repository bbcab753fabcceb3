"""Check the index specifications of ``createIndexes`` and ``create``, in the order of a server's checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.index import Index
from gmongo.testing.store.matching import SPECIAL, check_allowed, compile_filter
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.values import is_nan, is_number, is_true, is_whole
from gmongo.testing.unsupported import not_supported

_OBJECTS = frozenset({"collation", "key", "partialFilterExpression", "weights"})
_STRINGS = frozenset({"default_language", "name"})
_NUMBERS = frozenset({"expireAfterSeconds", "v"})
_FLAGS = frozenset({"background", "hidden", "prepareUnique", "sparse", "unique"})
# The options that servers support and the simulation refuses.
_REFUSED = frozenset({
    "2dsphereIndexVersion", "bits", "bucketSize", "clustered", "dropDups", "language_override", "max", "min", "ns",
    "storageEngine", "textIndexVersion", "wildcardProjection"
})  # fmt: skip
_KINDS = frozenset({"2d", "2dsphere", "hashed", "text"})
# The options that `listIndexes` shows, in this order.
_ORDER = (
    *("background", "unique", "hidden", "partialFilterExpression", "sparse", "expireAfterSeconds"),
    *("weights", "default_language", "language_override", "textIndexVersion", "2dsphereIndexVersion", "collation"),
    "prepareUnique",
)
_SHOWN_IF_FALSE = frozenset({"background", "sparse"})
_OF_IDENTITY = frozenset({"collation", "key", "name", "v"})
# The operators that the filter of a partial index may have.
_OF_PARTIAL_INDEXES = frozenset({"$all", "$eq", "$exists", "$gt", "$gte", "$in", "$lt", "$lte", "$type"})
_KNOWN = _OBJECTS | _STRINGS | _NUMBERS | _FLAGS | _REFUSED
_MAX_SECONDS = 2**31 - 1
_MOST_FIELDS = 32
_MAX_WEIGHT = 99_999


def compile_index(spec: Any, default: Document, ignore_unknown: bool = False) -> Index:
    """Check an index specification, and return a new index."""
    if ignore_unknown:
        spec = {name: value for name, value in spec.items() if name in _KNOWN}
    _check_fields(spec)
    _check_keys(spec["key"])
    _check_options(spec)
    options: Document = {
        name: bool(value) if name in _FLAGS else value for name, value in spec.items() if name in _ORDER
    }
    options = {name: value for name, value in options.items() if value is not False or name in _SHOWN_IF_FALSE}
    if "expireAfterSeconds" in options:
        options["expireAfterSeconds"] = int(float(str(options["expireAfterSeconds"])))
    collation = Collation.from_spec(spec["collation"]).description() if "collation" in spec else default
    options.pop("collation", None)
    if "2dsphere" in spec["key"].values():
        options.setdefault("2dsphereIndexVersion", 3)
    if collation:
        if {"2d", "text"} & set(map(str, spec["key"].values())):
            raise malformed("a text or 2d index with a collation")
        options["collation"] = collation
    keys = spec["key"]
    if "text" in keys.values():
        given = {path: 1 for path, kind in keys.items() if kind == "text"} | options.get("weights", {})
        options["weights"] = {path: int(given[path]) for path in sorted(given)}
        options = {"default_language": "english", "language_override": "language", "textIndexVersion": 3, **options}
        keys = _text_keys(keys)
    return Index(spec["name"], keys, {name: options[name] for name in _ORDER if name in options})


def _text_keys(keys: Mapping[str, Any]) -> Document:
    """Return the keys of a text index. Two internal keys replace the text fields."""
    found: Document = {}
    for path, kind in keys.items():
        found.update({"_fts": "text", "_ftsx": 1} if kind == "text" else {path: kind})
    return found


def same_keys(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Return True if two indexes have equal fields in equal order, with equal directions or kinds."""
    return list(left.items()) == list(right.items())


def _check_fields(spec: Mapping[str, Any]) -> None:
    unknown = sorted(set(spec) - _KNOWN)
    if unknown:
        raise error(197, f"The field '{unknown[0]}' is not valid for an index specification.")
    if not _REFUSED.isdisjoint(spec):
        raise not_supported("other options of an index", min(_REFUSED & set(spec)))
    has_types = all(
        isinstance(value, dict) if name in _OBJECTS
        else type(value) is str if name in _STRINGS
        else isinstance(value, bool) if name == "hidden"
        else is_number(value) or (name in _FLAGS and isinstance(value, bool))
        for name, value in spec.items()
    )  # fmt: skip
    if not has_types or not {"key", "name"} <= set(spec) or spec.get("collation") == {}:
        raise malformed("an index specification")


def _plugin(keys: Mapping[str, Any]) -> str:
    return next((kind for kind in keys.values() if isinstance(kind, str)), "")


def _check_keys(keys: Mapping[str, Any]) -> None:
    plugin = _plugin(keys)
    if any(path.split(".")[-1] == "$**" and (path, kind) != ("$**", "text") for path, kind in keys.items()):
        raise not_supported("a wildcard index")
    places = [place for place, kind in enumerate(keys.values()) if kind == "text"]
    if (
        not 1 <= len(keys) <= _MOST_FIELDS
        or (plugin and plugin not in _KINDS)
        or (places and places[-1] - places[0] >= len(places))
        or not all(_is_kind(kind, plugin) for kind in keys.values())
        or not all(path == "$**" or _is_path(path) for path in keys)
        or (list(keys) == ["_id"] and is_number(keys["_id"]) and keys["_id"] != 1)
    ):
        raise malformed("the keys of an index")


def _is_kind(kind: Any, plugin: str) -> bool:
    return kind == plugin != "" if isinstance(kind, str) else is_number(kind) and bool(kind) and kind == kind


def _is_path(path: str) -> bool:
    first, *others = path.split(".")
    names = [first, *(part for part in others if part not in ("$db", "$id", "$ref"))]
    return path != "_fts" and "" not in names and not any(part.startswith("$") for part in names)


def _check_options(spec: Mapping[str, Any]) -> None:
    plugin, name = _plugin(spec["key"]), spec["name"]
    is_identity = same_keys(spec["key"], {"_id": 1})
    if (
        (is_identity and not set(spec) <= _OF_IDENTITY)
        or (not is_whole(spec.get("v", 2)) or spec.get("v", 2) not in (1, 2) or (spec.get("v") == 1 and len(spec) > 3))
        or (spec.get("unique") and spec.get("prepareUnique"))
        or (plugin != "text" and not {"default_language", "weights"}.isdisjoint(spec))
        or not name
        or "\0" in name
        or name == "*"
        or (name == "_id_" and not is_identity)
    ):
        raise malformed("an index specification")
    if "partialFilterExpression" in spec:
        check_allowed(spec["partialFilterExpression"], SPECIAL)
        compile_filter(spec["partialFilterExpression"])
        _check_partial(spec["partialFilterExpression"])
        if spec.get("sparse"):
            raise malformed("a sparse and partial index")
    if plugin:
        _check_other_kind(spec, plugin)
    if "expireAfterSeconds" in spec:
        _check_expiry(spec)


def _check_other_kind(spec: Mapping[str, Any], plugin: str) -> None:
    kinds = list(spec["key"].values())
    if plugin == "hashed" and kinds.count("hashed") > 1:
        raise malformed("an index with two hashed fields")
    if plugin not in ("", "hashed") and spec.get("unique"):
        raise not_supported("a unique index of another kind")
    weights = spec.get("weights", {})
    has_weights = all(type(one) is int and 0 < one < _MAX_WEIGHT for one in weights.values())
    is_plain = has_weights and all(map(str.isalnum, weights)) and (plugin != "2d" or len(kinds) == 1)
    if not is_plain or spec.get("default_language", "english") not in ("english", "none"):
        raise not_supported("other options of an index", plugin)


def _check_expiry(spec: Mapping[str, Any]) -> None:
    seconds = spec["expireAfterSeconds"]
    is_valid = is_number(seconds) and not is_nan(seconds) and 0 <= float(str(seconds)) <= _MAX_SECONDS
    if not is_valid or len(spec["key"]) > 1:
        raise malformed("a TTL index")


def _check_partial(condition: Mapping[str, Any]) -> None:
    for name, operand in condition.items():
        if name.startswith("$") or is_pattern(operand) or (is_operators(operand) and not _is_indexable(operand)):
            raise malformed("the filter of a partial index")


def _is_indexable(operators: Mapping[str, Any]) -> bool:
    return (
        set(operators) <= _OF_PARTIAL_INDEXES
        and is_true(operators.get("$exists", True))
        and not any(is_pattern(one) or is_operators(one) for one in operators.get("$all", ()))
    )

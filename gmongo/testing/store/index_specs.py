"""Check the index specifications of ``createIndexes``, in the order of a server's checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.index import Index
from gmongo.testing.store.matching import RESTRICTED_OPERATORS, check_allowed, compile_filter
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.values import is_integral, is_nan, is_number, is_true
from gmongo.testing.unsupported import not_supported

_OBJECT_OPTIONS = frozenset({"collation", "key", "partialFilterExpression", "weights"})
_STRING_OPTIONS = frozenset({"default_language", "name"})
_NUMBER_OPTIONS = frozenset({"expireAfterSeconds", "v"})
_FLAG_OPTIONS = frozenset({"background", "hidden", "prepareUnique", "sparse", "unique"})
# The options that servers accept and the simulation refuses.
_REFUSED_OPTIONS = frozenset({
    "2dsphereIndexVersion", "bits", "bucketSize", "clustered", "dropDups", "language_override", "max", "min", "ns",
    "storageEngine", "textIndexVersion", "wildcardProjection"
})  # fmt: skip
_INDEX_KINDS = frozenset({"2d", "2dsphere", "hashed", "text"})
# The options in the reply to `listIndexes`, in the order of the reply.
_OPTION_ORDER = (
    *("background", "unique", "hidden", "partialFilterExpression", "sparse", "expireAfterSeconds"),
    *("weights", "default_language", "language_override", "textIndexVersion", "2dsphereIndexVersion", "collation"),
    "prepareUnique",
)
_OPTIONS_SHOWN_IF_FALSE = frozenset({"background", "sparse"})
_ID_INDEX_OPTIONS = frozenset({"collation", "key", "name", "v"})
# The operators on fields that the simulation supports in the filter of a partial index.
_PARTIAL_INDEX_OPERATORS = frozenset({"$all", "$eq", "$exists", "$gt", "$gte", "$in", "$lt", "$lte", "$type"})
_KNOWN_OPTIONS = _OBJECT_OPTIONS | _STRING_OPTIONS | _NUMBER_OPTIONS | _FLAG_OPTIONS | _REFUSED_OPTIONS
_MAX_SECONDS = 2**31 - 1
_MAX_FIELDS = 32
_MAX_WEIGHT = 99_999


def compile_index(spec: Any, default_collation: Document, ignores_unknown: bool = False) -> Index:
    """Check an index specification, and return a new index."""
    if ignores_unknown:
        spec = {name: value for name, value in spec.items() if name in _KNOWN_OPTIONS}
    _check_fields(spec)
    _check_keys(spec["key"])
    _check_options(spec)
    options: Document = {
        name: bool(value) if name in _FLAG_OPTIONS else value for name, value in spec.items() if name in _OPTION_ORDER
    }
    options = {name: value for name, value in options.items() if value is not False or name in _OPTIONS_SHOWN_IF_FALSE}
    if "expireAfterSeconds" in options:
        options["expireAfterSeconds"] = int(float(str(options["expireAfterSeconds"])))
    collation = Collation.from_spec(spec["collation"]).describe() if "collation" in spec else default_collation
    options.pop("collation", None)
    if "2dsphere" in spec["key"].values():
        options.setdefault("2dsphereIndexVersion", 3)
    if collation:
        if {"2d", "text"} & set(map(str, spec["key"].values())):
            raise malformed("a text or 2d index with a collation")
        options["collation"] = collation
    keys = spec["key"]
    if "text" in keys.values():
        weights = {path: 1 for path, kind in keys.items() if kind == "text"} | options.get("weights", {})
        options["weights"] = {path: int(weights[path]) for path in sorted(weights)}
        options = {"default_language": "english", "language_override": "language", "textIndexVersion": 3, **options}
        keys = _create_text_keys(keys)
    return Index(spec["name"], keys, {name: options[name] for name in _OPTION_ORDER if name in options})


def _create_text_keys(keys: Mapping[str, Any]) -> Document:
    """Return the keys of a text index. Two internal keys replace the text fields."""
    text_keys: Document = {}
    for path, kind in keys.items():
        text_keys.update({"_fts": "text", "_ftsx": 1} if kind == "text" else {path: kind})
    return text_keys


def keys_match(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Return True if two indexes have equal fields in equal order, with equal directions or kinds."""
    return list(left.items()) == list(right.items())


def _check_fields(spec: Mapping[str, Any]) -> None:
    unknown_names = sorted(set(spec) - _KNOWN_OPTIONS)
    if unknown_names:
        raise error(197, f"The field '{unknown_names[0]}' is not valid for an index specification.")
    if not _REFUSED_OPTIONS.isdisjoint(spec):
        raise not_supported("an unsupported option of an index", min(_REFUSED_OPTIONS & set(spec)))
    has_valid_types = all(
        isinstance(value, dict) if name in _OBJECT_OPTIONS
        else type(value) is str if name in _STRING_OPTIONS
        else isinstance(value, bool) if name == "hidden"
        else is_number(value) or (name in _FLAG_OPTIONS and isinstance(value, bool))
        for name, value in spec.items()
    )  # fmt: skip
    if not has_valid_types or not {"key", "name"} <= set(spec) or spec.get("collation") == {}:
        raise malformed("an index specification")


def _find_special_kind(keys: Mapping[str, Any]) -> str:
    return next((kind for kind in keys.values() if isinstance(kind, str)), "")


def _check_keys(keys: Mapping[str, Any]) -> None:
    special_kind = _find_special_kind(keys)
    if any(path.split(".")[-1] == "$**" and (path, kind) != ("$**", "text") for path, kind in keys.items()):
        raise not_supported("a wildcard index")
    positions = [position for position, kind in enumerate(keys.values()) if kind == "text"]
    if (
        not 1 <= len(keys) <= _MAX_FIELDS
        or (special_kind and special_kind not in _INDEX_KINDS)
        or (positions and positions[-1] - positions[0] >= len(positions))
        or not all(_is_valid_kind(kind, special_kind) for kind in keys.values())
        or not all(path == "$**" or _is_valid_path(path) for path in keys)
        or (list(keys) == ["_id"] and is_number(keys["_id"]) and keys["_id"] != 1)
    ):
        raise malformed("the keys of an index")


def _is_valid_kind(kind: Any, special_kind: str) -> bool:
    return kind == special_kind != "" if isinstance(kind, str) else is_number(kind) and bool(kind) and kind == kind


def _is_valid_path(path: str) -> bool:
    first_part, *other_parts = path.split(".")
    names = [first_part, *(part for part in other_parts if part not in ("$db", "$id", "$ref"))]
    return path != "_fts" and "" not in names and not any(part.startswith("$") for part in names)


def _check_options(spec: Mapping[str, Any]) -> None:
    special_kind, name = _find_special_kind(spec["key"]), spec["name"]
    is_id_index = keys_match(spec["key"], {"_id": 1})
    if (
        (is_id_index and not set(spec) <= _ID_INDEX_OPTIONS)
        or (
            not is_integral(spec.get("v", 2))
            or spec.get("v", 2) not in (1, 2)
            or (spec.get("v") == 1 and len(spec) > 3)
        )
        or (spec.get("unique") and spec.get("prepareUnique"))
        or (special_kind != "text" and not {"default_language", "weights"}.isdisjoint(spec))
        or not name
        or "\0" in name
        or name == "*"
        or (name == "_id_" and not is_id_index)
    ):
        raise malformed("an index specification")
    if "partialFilterExpression" in spec:
        check_allowed(spec["partialFilterExpression"], RESTRICTED_OPERATORS)
        compile_filter(spec["partialFilterExpression"])
        _check_partial_filter(spec["partialFilterExpression"])
        if spec.get("sparse"):
            raise malformed("a sparse and partial index")
    if special_kind:
        _check_special_kind(spec, special_kind)
    if "expireAfterSeconds" in spec:
        _check_expiry(spec)


def _check_special_kind(spec: Mapping[str, Any], special_kind: str) -> None:
    kinds = list(spec["key"].values())
    if special_kind == "hashed" and kinds.count("hashed") > 1:
        raise malformed("an index with two hashed fields")
    if special_kind not in ("", "hashed") and spec.get("unique"):
        raise not_supported("a unique text or geospatial index")
    weights = spec.get("weights", {})
    has_weights = all(type(item) is int and 0 < item < _MAX_WEIGHT for item in weights.values())
    has_valid_options = has_weights and all(map(str.isalnum, weights)) and (special_kind != "2d" or len(kinds) == 1)
    if not has_valid_options or spec.get("default_language", "english") not in ("english", "none"):
        raise not_supported("an unsupported option of an index", special_kind)


def _check_expiry(spec: Mapping[str, Any]) -> None:
    seconds = spec["expireAfterSeconds"]
    is_valid = is_number(seconds) and not is_nan(seconds) and 0 <= float(str(seconds)) <= _MAX_SECONDS
    if not is_valid or len(spec["key"]) > 1:
        raise malformed("a TTL index")


def _check_partial_filter(condition: Mapping[str, Any]) -> None:
    for name, operand in condition.items():
        if name in ("$and", "$or"):
            for each in operand:
                _check_partial_filter(each)
        elif name.startswith("$") or is_pattern(operand) or (has_operators(operand) and not _is_indexable(operand)):
            raise malformed("the filter of a partial index")


def _is_indexable(operators: Mapping[str, Any]) -> bool:
    return (
        set(operators) <= _PARTIAL_INDEX_OPERATORS
        and is_true(operators.get("$exists", True))
        and not any(is_pattern(item) or has_operators(item) for item in operators.get("$all", ()))
    )

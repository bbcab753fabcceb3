"""Check the index specifications of ``createIndexes`` and ``create``, in the order of a server's checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import (
    bad_value,
    cannot_create,
    failed_to_parse,
    invalid_options,
    location,
    type_mismatch,
)
from gmongo.testing.store.index import Index
from gmongo.testing.store.matching import SPECIAL, check_allowed, compile_filter
from gmongo.testing.store.operators import is_operators, requires_field
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.values import is_nan, is_number, is_whole, type_name
from gmongo.testing.unsupported import not_supported

Version = tuple[int, int]
_TYPES: Mapping[str, str] = {
    "object": "collation key partialFilterExpression wildcardProjection",
    "string": "default_language language_override name",
    "number": "2dsphereIndexVersion bits max min textIndexVersion v",
    "bool": "hidden",
    "switch": "background clustered dropDups prepareUnique sparse unique",
    "weights": "weights",
    "any": "bucketSize expireAfterSeconds ns storageEngine",
}
_TYPE_OF = {name: expected for expected, names in _TYPES.items() for name in names.split()}
_IS: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: type(value) is str,
    "number": is_number,
    "bool": lambda value: isinstance(value, bool),
    "switch": lambda value: isinstance(value, bool) or is_number(value),
    "weights": lambda value: isinstance(value, (dict, list, str)),
    "any": lambda value: True,
}
_KINDS = frozenset({"2d", "2dsphere", "hashed", "text"})
# The options that `listIndexes` shows, in this order.
_ORDER = (
    *("background", "unique", "hidden", "partialFilterExpression", "sparse", "expireAfterSeconds", "storageEngine"),
    *("weights", "default_language", "language_override", "textIndexVersion", "2dsphereIndexVersion", "collation"),
    "prepareUnique",
)
_FLAGS = frozenset({"background", "hidden", "prepareUnique", "sparse", "unique"})
_SHOWN_IF_FALSE = frozenset({"background", "sparse"})
_OF_IDENTITY = frozenset({"collation", "key", "name", "ns", "v"})
# The operators that the filter of a partial index may have. `$in` requires version 6.0.
_OF_PARTIAL_INDEXES = frozenset({"$all", "$eq", "$exists", "$gt", "$gte", "$in", "$lt", "$lte", "$type"})
_OF_OTHER_KINDS = frozenset(
    {
        "2dsphereIndexVersion",
        "bits",
        "default_language",
        "language_override",
        "max",
        "min",
        "textIndexVersion",
        "weights",
    }
)
_PARTIAL_DEPTH = 4
_MAX_SECONDS = 2**31 - 1
_MOST_FIELDS = 32
_MAX_WEIGHT = 99_999


def compile_index(spec: Any, default: Document, version: Version, ignore_unknown: bool = False) -> Index:
    """Check an index specification, and return a new index.

    :param spec: the index specification.
    :param default: the collation of the collection.
    :param version: the server version.
    :param ignore_unknown: True to ignore unknown options instead of raising an error.
    """
    if ignore_unknown:
        spec = {name: value for name, value in spec.items() if name in _TYPE_OF}
    _check_fields(spec)
    _check_keys(spec["key"])
    _check_options(spec, version)
    _check_name(spec["name"], spec["key"])
    options: Document = {
        name: bool(value) if name in _FLAGS else value for name, value in spec.items() if name in _ORDER
    }
    options = {name: value for name, value in options.items() if value is not False or name in _SHOWN_IF_FALSE}
    if "expireAfterSeconds" in options:
        options["expireAfterSeconds"] = int(float(str(options["expireAfterSeconds"])))
    collation = Collation.of(spec["collation"]).description() if "collation" in spec else default
    options.pop("collation", None)
    if "2dsphere" in spec["key"].values():
        options.setdefault("2dsphereIndexVersion", 3)
    if collation:
        if {"2d", "text"} & set(map(str, spec["key"].values())):
            raise cannot_create(
                "text and 2d indexes know the simple collation only; ask for it with collation: {locale: 'simple'}"
            )
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


def _check_name(name: str, keys: Mapping[str, Any]) -> None:
    if not name:
        raise cannot_create("index name cannot be empty")
    if "\0" in name:
        raise cannot_create("index name cannot contain NUL bytes")
    if name == "*":
        raise bad_value("The index name '*' is not valid.")
    if name == "_id_" and not same_keys(keys, {"_id": 1}):
        raise bad_value("The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}")


def check_identity_spec(spec: Mapping[str, Any], collation: Document) -> None:
    """Check the option ``idIndex`` of ``create``.

    :param spec: the index specification.
    :param collation: the collation of the collection.
    """
    _check_fields(spec)
    _check_identity_options(spec)
    if not same_keys(spec["key"], {"_id": 1}):
        raise bad_value(f"The field 'key' for an _id index must be {{_id: 1}}, but got {spec['key']}")
    if "collation" in spec and Collation.of(spec["collation"]).description() != collation:
        raise bad_value("'idIndex' must have the same collation as the collection.")


def same_keys(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Return True if two indexes have equal fields in equal order, with equal directions or kinds."""
    return list(left.items()) == list(right.items())


def _not_valid(name: str, document: str) -> CommandError:
    return CommandError(197, "InvalidIndexSpecificationOption", f"The field '{name}' is not valid for {document}.")


def _check_fields(spec: Mapping[str, Any]) -> None:
    unknown = sorted(set(spec) - set(_TYPE_OF))
    if unknown:
        raise _not_valid(unknown[0], "an index specification")
    for name, value in spec.items():
        expected = _TYPE_OF[name]
        if not _IS[expected](value):
            raise type_mismatch(f"The field '{name}' must be of type {expected}, but got {type_name(value)}")
    for name in ("key", "name"):
        if name not in spec:
            raise failed_to_parse(f"The '{name}' field is a required property of an index specification")
    if spec.get("collation") == {}:
        raise bad_value("The field 'collation' cannot be an empty object.")


def _plugin(keys: Mapping[str, Any]) -> str:
    return next((kind for kind in keys.values() if isinstance(kind, str)), "")


def _check_keys(keys: Mapping[str, Any]) -> None:
    if not keys:
        raise cannot_create("Index keys cannot be empty.")
    plugin = _plugin(keys)
    if any(path.split(".")[-1] == "$**" and (path, kind) != ("$**", "text") for path, kind in keys.items()):
        raise not_supported("a wildcard index")
    if plugin and plugin not in _KINDS:
        raise cannot_create(f"Unknown index plugin '{plugin}'")
    places = [place for place, kind in enumerate(keys.values()) if kind == "text"]
    if places and places[-1] - places[0] >= len(places):
        raise cannot_create("'text' fields in index must all be adjacent")
    for path, kind in keys.items():
        if not isinstance(kind, str) and (not is_number(kind) or not kind or kind != kind):
            raise cannot_create(f"Values in the index key pattern cannot be {kind!r}. Only numbers > 0, numbers < 0, "
                                "and strings are allowed.")  # fmt: skip
        if isinstance(kind, str) and (kind != plugin or not kind):
            raise cannot_create(f"Can't use more than one index plugin for a single index, or '{kind}'")
        if path != "$**":
            _check_path(path)


def _check_path(path: str) -> None:
    if path == "_fts":
        raise cannot_create("Index key contains an illegal field name: '_fts'")
    parts = path.split(".")
    if "" in parts:
        raise cannot_create("Index keys cannot contain an empty field.")
    for number, part in enumerate(parts):
        of_reference = number > 0 and part in ("$db", "$id", "$ref")
        if part.startswith("$") and not of_reference:
            raise cannot_create("Index key contains an illegal field name: field name starts with '$'.")


def _check_options(spec: Mapping[str, Any], version: Version) -> None:
    plugin = _plugin(spec["key"])
    if same_keys(spec["key"], {"_id": 1}):
        _check_identity_options(spec)
    _check_version(spec)
    if "weights" in spec and plugin != "text":
        raise cannot_create("the field 'weights' can only be specified with text indexes")
    if spec.get("unique") and spec.get("prepareUnique"):
        raise cannot_create("cannot create an index with the 'unique' option and the 'prepareUnique' option")
    _check_not_clustered(spec)
    if "storageEngine" in spec and (not isinstance(spec["storageEngine"], dict) or not spec["storageEngine"]):
        raise cannot_create('"storageEngine" options must be a document with valid options')
    if set(spec.get("storageEngine", ())) - {"wiredTiger"}:
        raise invalid_options("the storage engine is not registered for this server")
    if "partialFilterExpression" in spec:
        check_allowed(spec["partialFilterExpression"], SPECIAL)
        compile_filter(spec["partialFilterExpression"])
        _check_partial(spec["partialFilterExpression"], version)
        if spec.get("sparse"):
            raise cannot_create("cannot mix 'partialFilterExpression' and 'sparse' options")
    if "wildcardProjection" in spec:
        raise bad_value("The field 'wildcardProjection' is only allowed in 'wildcard' indexes")
    if plugin:
        _check_other_kind(spec, plugin)
    if "expireAfterSeconds" in spec:
        _check_expiry(spec)
    if len(spec["key"]) > _MOST_FIELDS:
        raise location(13103, "too many compound keys")


def _check_version(spec: Mapping[str, Any]) -> None:
    if not is_whole(spec.get("v", 2)):
        raise bad_value(f"Index version must be representable as a 32-bit integer, but got {spec['v']}")
    if spec.get("v", 2) not in (1, 2):
        raise cannot_create(f"cannot create an index with v={spec['v']}")
    if spec.get("v") == 1 and "collation" in spec:
        raise cannot_create("cannot create an index with the 'collation' option and v=1")


def _check_not_clustered(spec: Mapping[str, Any]) -> None:
    if "clustered" not in spec:
        return
    if not spec["clustered"]:
        raise location(6492800, "Value 'false' for field 'clustered' is invalid")
    if not spec.get("unique"):
        raise cannot_create("The 'unique' field is required when 'clustered' is specified")
    raise location(
        6243700, "Cannot create index with option 'clustered' that does not match an existing clustered index"
    )


def _check_identity_options(spec: Mapping[str, Any]) -> None:
    extra = sorted(set(spec) - _OF_IDENTITY)
    if extra:
        raise _not_valid(extra[0], "an _id index specification")


def _check_other_kind(spec: Mapping[str, Any], plugin: str) -> None:
    kinds = list(spec["key"].values())
    if plugin == "hashed":
        if kinds.count("hashed") > 1:
            raise location(31303, f"A maximum of one index field is allowed to be hashed but found "
                           f"{kinds.count('hashed')}")  # fmt: skip
        return
    if spec.get("unique"):
        raise not_supported("a unique index of another kind")
    options = _OF_OTHER_KINDS & set(spec)
    if plugin == "text" and spec.get("default_language", "english") in ("english", "none"):
        weights = spec.get("weights", {})
        is_plain = isinstance(weights, dict) and all(map(str.isalnum, weights))
        if is_plain and all(type(one) is int and 0 < one < _MAX_WEIGHT for one in weights.values()):
            options -= {"default_language", "weights"}
    if options or (plugin == "2d" and len(kinds) > 1):
        raise not_supported("options of a text or geospatial index", ", ".join(sorted(options)) or "other fields")


def _check_expiry(spec: Mapping[str, Any]) -> None:
    seconds = spec["expireAfterSeconds"]
    if not is_number(seconds) or is_nan(seconds) or not 0 <= float(str(seconds)) <= _MAX_SECONDS:
        raise cannot_create(f"TTL index 'expireAfterSeconds' option must be numeric and within 0 to {_MAX_SECONDS}")
    if len(spec["key"]) > 1:
        raise cannot_create("TTL indexes are single-field indexes, compound indexes do not support TTL")


def _check_partial(condition: Mapping[str, Any], version: Version, depth: int = 0) -> None:
    if depth >= _PARTIAL_DEPTH:
        raise cannot_create("partialFilterExpression depth may not exceed internalPartialFilterExpressionMaxDepth")
    for name, operand in condition.items():
        if name in ("$and", "$or") and (version >= (6, 0) or (name == "$and" and not depth)):
            for part in operand:
                _check_partial(part, version, depth + 1)
        elif name.startswith("$"):
            raise _not_in_partial(name)
        elif is_operators(operand):
            for one, expected in operand.items():
                if one not in _OF_PARTIAL_INDEXES or (one == "$in" and version < (6, 0)):
                    raise _not_in_partial(one)
                if (one == "$exists" and not requires_field(expected)) or _has_patterns(one, expected):
                    raise _not_in_partial(f"{one} of {expected!r}")
        elif is_pattern(operand):
            raise _not_in_partial("a regular expression")


def _has_patterns(name: str, operand: Any) -> bool:
    return name == "$all" and any(is_pattern(one) or is_operators(one) for one in operand)


def _not_in_partial(construct: str) -> CommandError:
    return cannot_create(f"unsupported expression in partial index: {construct}")

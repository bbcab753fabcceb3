"""Check the options of ``create`` for collections, views and time series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing import clock
from gmongo.testing.command import error
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import BUILT_IN_VARIABLES
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.environment import Environment
from gmongo.testing.store.errors import bad_value, malformed
from gmongo.testing.store.fields import TABLE
from gmongo.testing.store.index_specs import keys_match
from gmongo.testing.store.matching import RESTRICTED_OPERATORS, check_allowed, compile_filter
from gmongo.testing.store.output import OUTPUT_STAGES
from gmongo.testing.store.stages import compile_pipeline
from gmongo.testing.store.values import MISSING, is_number, is_true, to_long, type_name
from gmongo.testing.unsupported import not_supported

_VALIDATION_ACTIONS = ("error", "warn", "errorAndLog")
_VALIDATION_LEVELS = ("strict", "off", "moderate")
_MAX_CAPPED_SIZE = 2**50
_MAX_DOCUMENT_COUNT = 2**31
# The order of options in `listCollections`.
OPTION_ORDER = """capped size max changeStreamPreAndPostImages validator validationLevel validationAction viewOn
    pipeline collation clusteredIndex expireAfterSeconds timeseries encryptedFields"""


_BUCKET_OPTIONS = ("bucketMaxSpanSeconds", "bucketRoundingSeconds")
_MAX_BUCKET_SECONDS = 365 * 86400
# The maximum time in seconds that a bucket covers, by granularity.
_BUCKET_SPANS: Mapping[str, int] = {"seconds": 3600, "minutes": 86400, "hours": 30 * 86400}
# The fields that the simulation accepts in the `create` command of a time series.
TIME_SERIES_OPTIONS = frozenset({"create", "collation", "expireAfterSeconds", "timeseries"})


def complete_series(options: Mapping[str, Any]) -> Document:
    """Check the option ``timeseries`` of a ``create``, and return the option with its defaults."""
    options = {name: value for name, value in options.items() if value is not None}
    names: Document = {name: options[name] for name in ("timeField", "metaField") if name in options}
    is_wrong = names.get("metaField") in ("_id", names["timeField"])
    if is_wrong or any("\0" in value or "." in value for value in names.values()):
        raise malformed("the fields of a time series")
    return {**names, **_complete_bucketing(options)}


def _complete_bucketing(options: Mapping[str, Any]) -> Document:
    """Return ``granularity`` with ``bucketMaxSpanSeconds``, or the options in ``_BUCKET_OPTIONS``."""
    span, rounding = (to_long(options[name]) if name in options else None for name in _BUCKET_OPTIONS)
    if "granularity" not in options and rounding is not None:
        if span != rounding or not 1 <= rounding <= _MAX_BUCKET_SECONDS:
            raise malformed("the seconds of a time series")
        return {"bucketRoundingSeconds": rounding, "bucketMaxSpanSeconds": span}
    granularity = options.get("granularity", "seconds")
    if granularity not in _BUCKET_SPANS or rounding is not None or span not in (None, _BUCKET_SPANS[granularity]):
        raise malformed("the granularity of a time series")
    return {"granularity": granularity, "bucketMaxSpanSeconds": _BUCKET_SPANS[granularity]}


def create_measurement(series: Mapping[str, Any], document: Document) -> Document:
    """Return a copy of a document that begins with the time and the metadata, as in time series."""
    names = [name for name in (series["timeField"], series.get("metaField")) if name in document]
    if type_name(document.get(series["timeField"], MISSING)) != "date":
        raise not_supported("a time series", "a measurement without a time")
    return {**{name: document[name] for name in names}, **document}


def parse_options(body: Mapping[str, Any]) -> Document:
    """Check the options of a ``create`` command. Return the options in the order and form of ``listCollections``."""
    options = {name: value for name, value in body.items() if name in TABLE["create"].fields and value is not None}
    refused_options = options.keys() - {"create", "flags", *OPTION_ORDER.split()}
    if refused_options:
        raise not_supported("an unsupported option of create", min(refused_options))
    options.update({name: to_long(options[name]) for name in ("size", "max") if is_number(options.get(name))})
    _check_choices(options)
    series = complete_series(options["timeseries"]) if "timeseries" in options else None
    _check_combination(options)
    collation = Collation.from_spec(options["collation"], required=True) if "collation" in options else Collation()
    check_contents(options)
    completed_options = {**options, "timeseries": series, "collation": collation.describe()}
    if "viewOn" in options:
        completed_options = {name: completed_options.get(name, []) for name in ("viewOn", "pipeline", "collation")}
    return {
        name: completed_options[name]
        for name in OPTION_ORDER.split()
        if completed_options.get(name) is not None and not is_default(name, completed_options[name])
    }


def is_default(name: str, value: Any) -> bool:
    """Return True if the value of an option is the default, which a server does not store."""
    if name in ("capped", "max", "clusteredIndex", "collation", "validator"):
        return not value or not is_true(value)
    return name == "changeStreamPreAndPostImages" and not is_true(value["enabled"])


def _check_combination(options: Mapping[str, Any]) -> None:
    is_clustered, is_capped = is_true(options.get("clusteredIndex")), options.get("capped")
    limit_options = {"size", "max"} & set(options)
    if (
        ("pipeline" in options and "viewOn" not in options)
        or (bool(limit_options) if is_clustered or not is_capped else not options.get("size"))
        or (is_capped and (is_clustered or "encryptedFields" in options))
        or not 1 <= options.get("size", 1) <= _MAX_CAPPED_SIZE
        or options.get("max", 0) >= _MAX_DOCUMENT_COUNT
        or ("expireAfterSeconds" in options and "timeseries" not in options and not is_clustered)
        or not 0 <= to_long(options.get("expireAfterSeconds", 0)) <= clock.seconds()
        or ("timeseries" in options and not set(options) <= TIME_SERIES_OPTIONS)
        or ("viewOn" in options and options.get("changeStreamPreAndPostImages", {}).get("enabled"))
        or (is_clustered and not _is_clustered_index(options["clusteredIndex"]))
    ):
        raise malformed("create with conflicting options")


def _is_clustered_index(spec: Any) -> bool:
    return isinstance(spec, dict) and spec["unique"] and keys_match(spec["key"], {"_id": 1}) and spec.get("v", 2) == 2


def _check_choices(options: Mapping[str, Any]) -> None:
    for name, choices in (("validationAction", _VALIDATION_ACTIONS), ("validationLevel", _VALIDATION_LEVELS)):
        if options.get(name, choices[0]) not in choices:
            raise bad_value(f"Enumeration value '{options[name]}' for field '{name}' is not a valid value.")
    if options.get("viewOn") == "":
        raise bad_value("'viewOn' cannot be empty")


def check_contents(options: Mapping[str, Any]) -> None:
    """Check the options of views and of validation in a ``create`` or ``collMod`` command."""
    _check_choices(options)
    if "pipeline" in options:
        for stage in options["pipeline"]:
            if isinstance(stage, dict) and OUTPUT_STAGES & set(stage):
                raise error(167, "a view cannot contain $out or $merge")
        compile_pipeline(options["pipeline"], Environment.from_variables(BUILT_IN_VARIABLES))
    if options.get("validator"):
        check_allowed(options["validator"], RESTRICTED_OPERATORS - {"$expr", "$jsonSchema"})
        compile_filter(options["validator"])


def check_view(views: list[Collection], name: str, options: Document) -> None:
    """Check that a new view is in no cycle of views, and has the collation of its source views."""
    if "viewOn" in options:
        own_text = repr(options)
        if any(repr(name) in text for text in (own_text, *(repr(view.options) for view in views))):
            raise not_supported("a view whose name occurs in the definition of a view")
        collation = Collation.from_spec(options.get("collation"))
        if any(repr(view.name) in own_text and view.collation != collation for view in views):
            raise malformed("a view whose collation differs from its source")


def check_find_of_view(body: Document) -> None:
    """Check that an aggregation supports the options of a ``find`` on a view."""
    projection = body.get("projection") or {}
    operator_documents = [value for value in projection.values() if isinstance(value, dict)]
    if (
        any(body.get(name) for name in ("returnKey", "showRecordId", "tailable"))
        or any(path.endswith(".$") for path in projection)
        or any("$elemMatch" in value or is_number(value.get("$slice")) for value in operator_documents)
    ):
        raise malformed("a find of a view with options that aggregate does not have")

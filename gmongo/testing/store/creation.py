"""Check the options of ``create`` for collections and views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing import clock
from gmongo.testing.command import CommandError
from gmongo.testing.store import timeseries
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import BUILT_IN
from gmongo.testing.store.data import Document
from gmongo.testing.store.environment import Environment
from gmongo.testing.store.errors import bad_value, invalid_options, location
from gmongo.testing.store.expressions import constants_later
from gmongo.testing.store.fields import TABLE
from gmongo.testing.store.index_specs import check_identity_spec
from gmongo.testing.store.matching import SPECIAL, check_allowed, compile_filter
from gmongo.testing.store.output import OUTPUTS
from gmongo.testing.store.stages import compile_pipeline
from gmongo.testing.store.values import is_number, is_true, long_of

_NOT_OPTIONS = frozenset({"create", "flags", "idIndex"})
_ACTIONS = ("error", "warn", "errorAndLog")
_LEVELS = ("strict", "off", "moderate")
_MAX_CAPPED_SIZE = 2**50
_MAX_COUNT = 2**31
# The order of options in `listCollections`.
ORDER = """capped size max autoIndexId changeStreamPreAndPostImages storageEngine indexOptionDefaults validator
    validationLevel validationAction viewOn pipeline collation clusteredIndex expireAfterSeconds timeseries
    encryptedFields"""


def created_options(body: Mapping[str, Any]) -> Document:
    """Check the options of a ``create`` command. Return the options in the order and form of ``listCollections``."""
    options = {
        name: value
        for name, value in body.items()
        if name in TABLE["create"].fields and name not in _NOT_OPTIONS and value is not None
    }
    options.update({name: long_of(options[name]) for name in ("size", "max") if is_number(options.get(name))})
    options.update({"autoIndexId": is_true(options["autoIndexId"])} if "autoIndexId" in options else {})
    _check_ranges(options)
    _check_choices(options)
    series = timeseries.completed(options["timeseries"]) if "timeseries" in options else None
    _check_combination(options)
    if body.get("idIndex") is not None:
        for name in ("viewOn", "timeseries", "autoIndexId"):
            if body.get(name) is not None:
                raise invalid_options(f"'idIndex' is not allowed with '{name}'")
    collation = Collation.of(options["collation"], required=True) if "collation" in options else Collation()
    if body.get("idIndex") is not None:
        check_identity_spec(body["idIndex"], collation.description())
    check_contents(options)
    if not options.get("autoIndexId", True):
        raise location(50001, "a collection is not allowed to have autoIndexId: false")
    completed = {**options, "timeseries": series, "collation": collation.description()}
    if "viewOn" in options:
        completed = {name: completed.get(name, []) for name in ("viewOn", "pipeline", "collation")}
    return {
        name: completed[name]
        for name in ORDER.split()
        if completed.get(name) is not None and not _is_default(name, completed[name])
    }


def _is_default(name: str, value: Any) -> bool:
    """Return True if the value of an option is the default. A server does not store such a value."""
    if name in ("capped", "max", "clusteredIndex", "collation", "indexOptionDefaults", "storageEngine", "validator"):
        return not value or not is_true(value)
    return name == "changeStreamPreAndPostImages" and not is_true(value["enabled"])


def _check_ranges(options: Mapping[str, Any]) -> None:
    if "size" in options:
        check_capped_size("create.size", options["size"])
    if "max" in options:
        check_capped_count("create.max", options["max"])


def check_capped_size(field: str, size: int) -> None:
    """Check the maximum size of a capped collection.

    :param field: the name of the option in error messages.
    :param size: the maximum size in bytes.
    """
    if not 1 <= size <= _MAX_CAPPED_SIZE:
        raise location(51024, f"BSON field '{field}' value must be from 1 to {_MAX_CAPPED_SIZE}, actual value '{size}'")


def check_capped_count(field: str, count: int) -> None:
    """Check the maximum number of documents in a capped collection.

    :param field: the name of the option in error messages.
    :param count: the maximum number of documents.
    """
    if count >= _MAX_COUNT:
        raise location(51024, f"BSON field '{field}' value must be < {_MAX_COUNT}, actual value '{count}'")


def check_expiry(seconds: Any) -> None:
    """Check the option ``expireAfterSeconds`` of a clustered collection or a time series."""
    if long_of(seconds) < 0:
        raise invalid_options("TTL index 'expireAfterSeconds' option cannot be less than 0")
    if long_of(seconds) > clock.seconds():
        raise invalid_options("TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower "
                              "number")  # fmt: skip


def _check_combination(options: Mapping[str, Any]) -> None:
    if "temp" in options:
        raise invalid_options("the 'temp' field is an invalid option")
    if "pipeline" in options and "viewOn" not in options:
        raise invalid_options("'pipeline' requires 'viewOn' to also be specified")
    if "timeseries" in options:
        timeseries.check_other_options({name: value for name, value in options.items() if name != "capped" or value})
    if is_true(options.get("clusteredIndex")):
        _check_clustered(options)
    else:
        if options.get("capped") and not options.get("size"):
            raise invalid_options("the 'size' field is required when 'capped' is true")
        if ("size" in options or "max" in options) and not options.get("capped"):
            raise invalid_options("the 'capped' field needs to be true when either the 'size' or 'max' fields are "
                                  "present")  # fmt: skip
    if "expireAfterSeconds" in options:
        if "timeseries" not in options and not options.get("clusteredIndex"):
            raise invalid_options("'expireAfterSeconds' is only supported on time-series collections or when the "
                                  "'clusteredIndex' option is specified")  # fmt: skip
        check_expiry(options["expireAfterSeconds"])
    for engine, settings in (options.get("storageEngine") or {}).items():
        if not isinstance(settings, dict):
            raise bad_value(f"'storageEngine.{engine}' has to be an embedded document.")
        if engine != "wiredTiger":
            raise invalid_options(f"{engine} is not a registered storage engine for this server")
    if "encryptedFields" in options and options.get("capped"):
        raise location(6367301, "Encrypted fields cannot be used with capped collections")
    if "viewOn" in options and options.get("changeStreamPreAndPostImages", {}).get("enabled"):
        raise invalid_options("option not supported on a view: changeStreamPreAndPostImages")


def _check_clustered(options: Mapping[str, Any]) -> None:
    clustered = options["clusteredIndex"]
    for name, code in (("size", 6049200), ("max", 6049204)):
        if name in options:
            raise location(code, f"'{name}' field for capped collections is not allowed on clustered collections")
    if options.get("capped"):
        raise location(6127800, "Clustered capped collection only available with 'enableTestCommands' server parameter")
    if not isinstance(clustered, dict):
        raise location(5979703, "The 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for "
                       "specific internal collections and vice versa")  # fmt: skip
    if not clustered["unique"]:
        raise location(5979700, "The clusteredIndex option requires unique: true to be specified")
    if list(clustered["key"].items()) != [("_id", 1)]:
        raise CommandError(197, "InvalidIndexSpecificationOption", "The clusteredIndex option is only supported for "
                           "key: {_id: 1}")  # fmt: skip
    if clustered.get("v", 2) != 2:
        raise location(5979704, "The clusteredIndex option is only supported for v: 2")


def _check_choices(options: Mapping[str, Any]) -> None:
    for name, choices in (("validationAction", _ACTIONS), ("validationLevel", _LEVELS)):
        if options.get(name, choices[0]) not in choices:
            raise bad_value(f"Enumeration value '{options[name]}' for field '{name}' is not a valid value.")
    if options.get("viewOn") == "":
        raise bad_value("'viewOn' cannot be empty")


def check_contents(options: Mapping[str, Any]) -> None:
    """Check the values of the options that ``create`` and ``collMod`` have in common."""
    _check_choices(options)
    if "pipeline" in options:
        for stage in options["pipeline"]:
            if isinstance(stage, dict) and OUTPUTS & set(stage):
                raise CommandError(167, "OptionNotSupportedOnView", "a view cannot write, as $out and $merge do")
        with constants_later():
            compile_pipeline(options["pipeline"], Environment.of(BUILT_IN))
    if options.get("validator"):
        check_allowed(options["validator"], SPECIAL - {"$expr", "$jsonSchema"})
        with constants_later():
            compile_filter(options["validator"])

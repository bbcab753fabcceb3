"""Convert options that several kinds of entities and operations accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import make_read_preference, read_pref_mode_from_name
from gmongo.write_concern import WriteConcern
from tests.spec.unified.schema import FormatError


def read_concern(document: Mapping[str, Any]) -> ReadConcern:
    """Convert ``readConcern`` to a ReadConcern."""
    check_known(document, {"level"}, "a read concern")
    return ReadConcern(document.get("level"))


def write_concern(document: Mapping[str, Any]) -> WriteConcern:
    """Convert ``writeConcern`` to a WriteConcern."""
    check_known(document, {"w", "journal", "wtimeoutMS"}, "a write concern")
    return WriteConcern(document.get("w"), document.get("wtimeoutMS"), document.get("journal"))


def read_preference(document: Mapping[str, Any]) -> Any:
    """Convert ``readPreference`` to a read preference of the driver."""
    check_known(document, {"mode", "tagSets", "maxStalenessSeconds"}, "a read preference")
    mode = document["mode"][0].lower() + document["mode"][1:]
    staleness = document.get("maxStalenessSeconds", -1)
    return make_read_preference(read_pref_mode_from_name(mode), document.get("tagSets"), staleness)


CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "readConcern": read_concern,
    "writeConcern": write_concern,
    "readPreference": read_preference,
}
"""Conversion of each common option."""

_TIMEOUT_OPTION = "timeoutMS"


def common_options(document: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options of a database, collection, bucket or transaction to keyword arguments."""
    check_known(document, CONVERSIONS, "a database, a collection, a bucket or a transaction")
    return {snake_case(name): CONVERSIONS[name](value) for name, value in document.items()}


def database_options(document: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options of a database or a collection to keyword arguments."""
    rest = dict(document)
    timeout_ms = rest.pop(_TIMEOUT_OPTION, None)
    return {**common_options(rest), "timeout_ms": timeout_ms}


def check_known(names: Any, known: Any, owner: str) -> None:
    """Check that all field names of an object in a file are known."""
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise FormatError(f"unknown options of {owner}: {unknown}")


def snake_case(name: str) -> str:
    """Convert a name such as ``"maxTimeMS"`` to ``"max_time_ms"``."""
    for acronym in ("MS", "MD5"):
        name = name.replace(acronym, acronym.capitalize())
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)

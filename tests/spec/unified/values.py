"""The options that many entities and operations have in common, as the driver's objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import make_read_preference, read_pref_mode_from_name
from gmongo.write_concern import WriteConcern
from tests.spec.unified.schema import FormatError


def read_concern(document: Mapping[str, Any]) -> ReadConcern:
    """``readConcern`` of the common options."""
    check_known(document, {"level"}, "a read concern")
    return ReadConcern(document.get("level"))


def write_concern(document: Mapping[str, Any]) -> WriteConcern:
    """``writeConcern`` of the common options."""
    check_known(document, {"w", "journal", "wtimeoutMS"}, "a write concern")
    return WriteConcern(document.get("w"), document.get("wtimeoutMS"), document.get("journal"))


def read_preference(document: Mapping[str, Any]) -> Any:
    """``readPreference`` of the common options."""
    check_known(document, {"mode", "tagSets", "maxStalenessSeconds"}, "a read preference")
    mode = document["mode"][0].lower() + document["mode"][1:]
    staleness = document.get("maxStalenessSeconds", -1)
    return make_read_preference(read_pref_mode_from_name(mode), document.get("tagSets"), staleness)


CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "readConcern": read_concern,
    "writeConcern": write_concern,
    "readPreference": read_preference,
}
"""The common options by name."""

_LIMIT = "timeoutMS"


def common_options(document: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a database, a collection or a transaction, as keyword arguments.

    :raises FormatError: an option is not known.
    """
    check_known(document, CONVERSIONS, "a database, a collection or a transaction")
    return {snake_case(name): CONVERSIONS[name](value) for name, value in document.items()}


def database_options(document: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a database or a collection, as keyword arguments. Raises as :func:`common_options` does."""
    rest = dict(document)
    timeout_ms = rest.pop(_LIMIT, None)
    return {**common_options(rest), "timeout_ms": timeout_ms}


def check_known(given: Any, known: Any, what: str) -> None:
    """Refuse names that are not known.

    :raises FormatError: naming them.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise FormatError(f"unknown options of {what}: {unknown}")


def snake_case(name: str) -> str:
    """``"maxTimeMS"`` as ``"max_time_ms"``."""
    for acronym in ("MS", "MD5"):
        name = name.replace(acronym, acronym.capitalize())
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)

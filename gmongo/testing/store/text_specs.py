"""Specifications of text indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.errors import cannot_create, location
from gmongo.testing.store.values import MISSING, is_number, long_of

Document = dict[str, Any]
# By their names, and by their codes.
LANGUAGES: Mapping[str, str] = {
    "da": "danish",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nb": "norwegian",
    "nl": "dutch",
    "none": "none",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}
_RESERVED = ("_fts", "_ftsx")
_MAX_WEIGHT = 1_000_000_000


def language_of(name: str) -> str | None:
    """A language by its name or code; None if there is none of that name."""
    return LANGUAGES.get(name.lower(), name.lower() if name.lower() in LANGUAGES.values() else None)


def check_text(spec: Mapping[str, Any]) -> None:
    """Check the specification of a text index.

    :raises CommandError: 67, if there is no such index.
    """
    places = [place for place, kind in enumerate(spec["key"].values()) if kind == "text"]
    if places[-1] - places[0] >= len(places):
        raise cannot_create("'text' fields in index must all be adjacent")
    for path, kind in spec["key"].items():
        if path in _RESERVED and not {"_fts", "_ftsx"} <= set(spec["key"]):
            raise cannot_create("text index with reserved fields _fts/_ftsx not allowed")
        if kind != "text" and long_of(kind) not in (1, -1):
            raise cannot_create("expected value 1 or -1 for non-text key in compound index")
    _check_weights(spec)
    if language_of(spec.get("default_language", "english")) is None:
        raise cannot_create("default_language is not valid")
    override = spec.get("language_override", "language")
    if not override or override.startswith("$") or "." in override:
        raise cannot_create("language_override is not valid")
    if spec.get("textIndexVersion", 3) not in (1, 2, 3):
        raise cannot_create(f"bad textIndexVersion: {spec['textIndexVersion']}")


def _check_weights(spec: Mapping[str, Any]) -> None:
    weights = spec.get("weights", {})
    if not isinstance(weights, dict):
        if weights != "$**":
            raise cannot_create("text index option 'weights' must be an object")
        return
    for path, weight in weights.items():
        if not is_number(weight):
            raise cannot_create("weight for text index needs numeric type")
        if not 0 < long_of(weight) < _MAX_WEIGHT:
            raise cannot_create(f"text index weight must be in the exclusive interval (0,{_MAX_WEIGHT}) but found: "
                                f"{weight}")  # fmt: skip
        if path != "$**" and any(not part or part.startswith("$") for part in path.split(".")):
            raise cannot_create("weight cannot have an empty path component, or one with a $ prefix")
    if "_fts" in spec["key"] and not weights:
        raise cannot_create("a text index needs weights if it has no fields")


def text_keys(keys: Mapping[str, Any]) -> Document:
    """The fields of a text index as a server keeps them: two that stand for all that are text."""
    found: Document = {}
    for path, kind in keys.items():
        found.update({"_fts": "text", "_ftsx": 1} if kind == "text" else {path: kind})
    return found


def text_options(spec: Mapping[str, Any]) -> Document:
    """The options of a text index with what is set by default."""
    weights = {path: 1 for path, kind in spec["key"].items() if kind == "text" and path != "_fts"}
    given = spec.get("weights", {})
    given = {path: long_of(weight) for path, weight in given.items()} if isinstance(given, dict) else {given: 1}
    return {
        "weights": dict(sorted({**weights, **given}.items())),
        "default_language": spec.get("default_language", "english"),
        "language_override": spec.get("language_override", "language"),
        "textIndexVersion": spec.get("textIndexVersion", 3),
    }


def check_languages(document: Document, index: Mapping[str, Any], above: str = "") -> None:
    """Check the languages that a document, and those in it that the index reaches, say they are in.

    :param index: the options of the text index.
    :raises CommandError: 17261, if one is no string; 17262, if a server does not know it.
    """
    own = document.get(index["language_override"], MISSING)
    if own is not MISSING and type(own) is not str:
        raise location(17261, "found language override field in document with non-string type")
    if type(own) is str and language_of(own) is None:
        raise location(17262, f"language override unsupported: {own}")
    for name, value in document.items():
        path = f"{above}{name}."
        if any(weighed == "$**" or weighed.startswith(path) for weighed in index["weights"]):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, dict):
                    check_languages(part, index, path)

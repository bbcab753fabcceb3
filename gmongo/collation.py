"""Collations: the rules of string comparison on the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from gmongo._documents import Document, DocumentDict
from gmongo._truncated_repr import short

T = TypeVar("T")

__all__ = [
    "Collation",
    "CollationAlternate",
    "CollationCaseFirst",
    "CollationMaxVariable",
    "CollationStrength",
    "validate_collation_or_none",
]


class CollationStrength:
    """Levels of comparison. Each level compares more properties of the characters than the level before."""

    PRIMARY = 1
    """Compare base characters only."""
    SECONDARY = 2
    """Also compare accents."""
    TERTIARY = 3
    """Also compare case and variants of letters. This level is the server's default."""
    QUATERNARY = 4
    """Also compare punctuation, and distinguish Hiragana from Katakana."""
    IDENTICAL = 5
    """Also compare the code points of strings that are equal on all other levels."""


class CollationAlternate:
    """Treatment of spaces and punctuation in the comparison."""

    NON_IGNORABLE = "non-ignorable"
    """Spaces and punctuation are base characters. This value is the server's default."""
    SHIFTED = "shifted"
    """The server compares spaces and punctuation only if the strength is 4 or 5."""


class CollationMaxVariable:
    """Characters to which ``alternate="shifted"`` applies."""

    PUNCT = "punct"
    """``alternate="shifted"`` applies to spaces and punctuation."""
    SPACE = "space"
    """``alternate="shifted"`` applies to spaces only."""


class CollationCaseFirst:
    """Sort order of letters that differ only in case."""

    UPPER = "upper"
    """Sort upper case before lower case."""
    LOWER = "lower"
    """Sort lower case before upper case."""
    OFF = "off"
    """Use the order of the locale. This value is the server's default."""


class Collation:
    """Rules of string comparison.

    For a parameter that is None (the default), the server uses the default of the locale.

    ::

        people.find().sort("name").collation(Collation("fr_CA", strength=CollationStrength.SECONDARY))

    Specification: Collation. The parameters have the names of the fields in the specification.

    :param locale: an ICU locale such as ``"fr_CA"``, or ``"simple"`` for comparison of bytes.
    :param caseLevel: True includes case in the comparison at strength 1 or 2.
    :param caseFirst: the order of upper and lower case, as a value of :class:`CollationCaseFirst`.
    :param strength: the level of comparison, as a value of :class:`CollationStrength`.
    :param numericOrdering: True compares sequences of digits as numbers.
    :param alternate: the treatment of spaces and punctuation, as a value of :class:`CollationAlternate`.
    :param maxVariable: the characters to which ``"shifted"`` applies, as a value of :class:`CollationMaxVariable`.
    :param normalization: True converts strings to Unicode normal form before the comparison.
    :param backwards: True compares accents from the string's end, as in some French dictionaries.
    :param kwargs: further fields of the collation document, such as ``version`` in a document from a server.
    :raises TypeError: a parameter has the wrong type. The driver does not check the values, but the server does.
    """

    __slots__ = ("_document",)

    def __init__(
        self,
        locale: str,
        caseLevel: bool | None = None,
        caseFirst: str | None = None,
        strength: int | None = None,
        numericOrdering: bool | None = None,
        alternate: str | None = None,
        maxVariable: str | None = None,
        normalization: bool | None = None,
        backwards: bool | None = None,
        **kwargs: object,
    ) -> None:
        self._document: DocumentDict = {"locale": _checked_parameter("locale", locale, str)}
        for name, value, kind in (
            ("caseLevel", caseLevel, bool),
            ("caseFirst", caseFirst, str),
            ("strength", strength, int),
            ("numericOrdering", numericOrdering, bool),
            ("alternate", alternate, str),
            ("maxVariable", maxVariable, str),
            ("normalization", normalization, bool),
            ("backwards", backwards, bool),
        ):
            if value is not None:
                self._document[name] = _checked_parameter(name, value, kind)
        self._document.update(kwargs)

    @property
    def document(self) -> DocumentDict:
        """A copy of the collation document, without the parameters that are None."""
        return dict(self._document)

    def __eq__(self, other: object) -> bool:
        return self._document == other._document if isinstance(other, Collation) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._document.items()))

    def __repr__(self) -> str:
        return f"Collation({', '.join(f'{name}={value!r}' for name, value in self._document.items())})"


def validate_collation_or_none(value: Collation | Document | None) -> DocumentDict | None:
    """Return the document of a collation, or None if `value` is None.

    :param value: a :class:`Collation`, a collation document, or None.
    :raises TypeError: `value` is not a collation, a mapping or None.
    """
    if value is None:
        return None
    if isinstance(value, Collation):
        return value.document
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"collation must be a Collation, a mapping or None, not {short(value)}")


def _checked_parameter(name: str, value: T, kind: type) -> T:
    # bool is a subclass of int, but strength=True is a mistake.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"collation {name} must be of type {kind.__name__}, not {short(value)}")
    return value

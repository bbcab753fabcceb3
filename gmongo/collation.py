"""Collations: the server's rules of string comparison."""

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
    """Levels of differences between two strings that the comparison includes."""

    PRIMARY = 1
    """Base characters only."""
    SECONDARY = 2
    """Also accents."""
    TERTIARY = 3
    """Also case and variants of letters; the server's default."""
    QUATERNARY = 4
    """Also punctuation, or Hiragana against Katakana."""
    IDENTICAL = 5
    """Also the code points, to distinguish otherwise equal strings."""


class CollationAlternate:
    """Treatment of spaces and punctuation."""

    NON_IGNORABLE = "non-ignorable"
    """Spaces and punctuation are base characters; the server's default."""
    SHIFTED = "shifted"
    """Spaces and punctuation are compared only from strength 4 on."""


class CollationMaxVariable:
    """Characters that ``alternate="shifted"`` affects."""

    PUNCT = "punct"
    """Spaces and punctuation."""
    SPACE = "space"
    """Spaces only."""


class CollationCaseFirst:
    """Sort order of letters that differ only in case."""

    UPPER = "upper"
    """Upper case before lower case."""
    LOWER = "lower"
    """Lower case before upper case."""
    OFF = "off"
    """The order of the locale; the server's default."""


class Collation:
    """Rules of string comparison. A parameter of None is not sent, so that the server uses the locale's default.

    ::

        people.find().sort("name").collation(Collation("fr_CA", strength=CollationStrength.SECONDARY))

    Specification: Collation. The parameters have the names of the fields.

    :param locale: an ICU locale such as ``"fr_CA"``, or ``"simple"`` for comparison of bytes.
    :param caseLevel: True compares case at strength 1 and 2.
    :param caseFirst: a value of :class:`CollationCaseFirst`.
    :param strength: a value of :class:`CollationStrength`.
    :param numericOrdering: True compares runs of digits as numbers.
    :param alternate: a value of :class:`CollationAlternate`.
    :param maxVariable: a value of :class:`CollationMaxVariable`.
    :param normalization: True normalizes strings to Unicode normal form first.
    :param backwards: True compares accents from the end of the string, as in some French dictionaries.
    :param kwargs: further fields, such as the ``version`` in a server's collation document.
    :raises TypeError: a parameter has the wrong type. Only the server checks the values.
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
        self._document: DocumentDict = {"locale": _checked("locale", locale, str)}
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
                self._document[name] = _checked(name, value, kind)
        self._document.update(kwargs)

    @property
    def document(self) -> DocumentDict:
        """A copy of the collation document, with the specified parameters."""
        return dict(self._document)

    def __eq__(self, other: object) -> bool:
        return self._document == other._document if isinstance(other, Collation) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._document.items()))

    def __repr__(self) -> str:
        return f"Collation({', '.join(f'{name}={value!r}' for name, value in self._document.items())})"


def validate_collation_or_none(value: Collation | Document | None) -> DocumentDict | None:
    """Return the document of a collation, or None.

    :param value: a :class:`Collation`, a mapping, or None.
    :raises TypeError: `value` has another type.
    """
    if value is None:
        return None
    if isinstance(value, Collation):
        return value.document
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"collation must be a Collation, a mapping or None, not {short(value)}")


def _checked(name: str, value: T, kind: type) -> T:
    # bool is a subclass of int, but strength=True would be a mistake.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"collation {name} must be of type {kind.__name__}, not {short(value)}")
    return value

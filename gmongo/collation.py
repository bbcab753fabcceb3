"""Collations: the rules by which the server compares strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from gmongo._documents import Document, DocumentDict
from gmongo._short_text import short

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
    """How fine a difference between two strings counts."""

    PRIMARY = 1
    """Base characters only."""
    SECONDARY = 2
    """Also accents."""
    TERTIARY = 3
    """Also case and variants of letters; the server's default."""
    QUATERNARY = 4
    """Also punctuation, or Hiragana against Katakana."""
    IDENTICAL = 5
    """Also the code points, as a last resort."""


class CollationAlternate:
    """Whether spaces and punctuation count as base characters."""

    NON_IGNORABLE = "non-ignorable"
    """They do; the server's default."""
    SHIFTED = "shifted"
    """They do not: they count only from strength 4 on."""


class CollationMaxVariable:
    """Which characters ``alternate="shifted"`` passes over."""

    PUNCT = "punct"
    """Spaces and punctuation."""
    SPACE = "space"
    """Spaces only."""


class CollationCaseFirst:
    """Which case sorts first among letters that differ only in case."""

    UPPER = "upper"
    """Upper case before lower case."""
    LOWER = "lower"
    """Lower case before upper case."""
    OFF = "off"
    """As the locale has it; the server's default."""


class Collation:
    """The rules by which strings are compared. Parameters left at None are not sent, so that the server's default for
    the locale holds.

    ::

        people.find().sort("name").collation(Collation("fr_CA", strength=CollationStrength.SECONDARY))

    Specification: Collation. Parameters have the names of its fields.

    :param locale: an ICU locale such as ``"fr_CA"``, or ``"simple"`` for comparison of bytes.
    :param caseLevel: whether case counts at strength 1 and 2.
    :param caseFirst: a value of :class:`CollationCaseFirst`.
    :param strength: a value of :class:`CollationStrength`.
    :param numericOrdering: whether runs of digits compare as numbers.
    :param alternate: a value of :class:`CollationAlternate`.
    :param maxVariable: a value of :class:`CollationMaxVariable`.
    :param normalization: whether strings are brought into Unicode normal form first.
    :param backwards: whether accents compare from the end of the string, as in some French dictionaries.
    :param kwargs: further fields, such as the ``version`` that a server shows of a collation.
    :raises TypeError: a parameter has the wrong type. The values are judged by the server.
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
        """The collation as a document, with the parameters that were given; a copy."""
        return dict(self._document)

    def __eq__(self, other: object) -> bool:
        return self._document == other._document if isinstance(other, Collation) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._document.items()))

    def __repr__(self) -> str:
        return f"Collation({', '.join(f'{name}={value!r}' for name, value in self._document.items())})"


def validate_collation_or_none(value: Collation | Document | None) -> DocumentDict | None:
    """The document of a collation, or None if there is none.

    :param value: a :class:`Collation`, its document, or None.
    :raises TypeError: `value` is something else.
    """
    if value is None:
        return None
    if isinstance(value, Collation):
        return value.document
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"collation must be a Collation, a mapping or None, not {short(value)}")


def _checked(name: str, value: T, kind: type) -> T:
    # bool is a kind of int, but strength=True would be a slip.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"collation {name} must be of type {kind.__name__}, not {short(value)}")
    return value

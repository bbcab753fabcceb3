"""Names of the private module ``pymongo.typings`` that libraries import: types, and `strip_optional`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from bson.typings import _DocumentOut, _DocumentType, _DocumentTypeArg

from gmongo._documents import Document
from gmongo.collation import Collation
from gmongo.wire.address import Address as _Address

__all__ = ["_Address", "_DocumentOut", "_DocumentType", "_DocumentTypeArg"]

_T = TypeVar("_T")
_CollationIn: TypeAlias = Document | Collation
_Pipeline = Sequence[Document]
ClusterTime = Document


def strip_optional(elem: _T | None) -> _T:
    """Return `elem` after an assertion that `elem` is not None."""
    assert elem is not None
    return elem

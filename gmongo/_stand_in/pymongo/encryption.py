"""Client-side encryption: the names of algorithms are real, what would encrypt refuses."""

from __future__ import annotations

from enum import Enum

from gmongo._stand_in.pymongo.asynchronous import AsyncClientEncryption
from gmongo._stand_in.pymongo.encryption_options import Encryption
from gmongo.errors import EncryptedCollectionError, EncryptionError

__all__ = [
    "Algorithm",
    "AsyncClientEncryption",
    "ClientEncryption",
    "EncryptedCollectionError",
    "EncryptionError",
    "QueryType",
    "RewrapManyDataKeyResult",
]


class Algorithm(str, Enum):
    """How a field is encrypted."""

    AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic = "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"
    AEAD_AES_256_CBC_HMAC_SHA_512_Random = "AEAD_AES_256_CBC_HMAC_SHA_512-Random"
    INDEXED = "Indexed"
    UNINDEXED = "Unindexed"
    RANGE = "Range"
    STRING = "String"
    TEXTPREVIEW = "TextPreview"


class QueryType(str, Enum):
    """How an encrypted field can be queried."""

    EQUALITY = "equality"
    RANGE = "range"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    SUBSTRING = "substring"


class ClientEncryption(Encryption):
    """Refuses."""


class RewrapManyDataKeyResult(Encryption):
    """Refuses."""

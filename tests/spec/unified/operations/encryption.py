"""Operations of ``clientEncryption`` entities: explicit encryption and data keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS
from bson.raw_bson import RawBSONDocument

from tests.spec.unified.operations.method import Method
from tests.spec.unified.results import Documents, as_document
from tests.spec.unified.values import check_known, snake_case

if TYPE_CHECKING:
    from gmongo.encryption import ClientEncryption


def _decode_or_none(document: RawBSONDocument | None) -> Any:
    return None if document is None else _decode(document)


def _decode(document: RawBSONDocument) -> dict[str, Any]:
    return bson.decode(document.raw, DEFAULT_CODEC_OPTIONS)


def _options(opts: Mapping[str, Any] | None, known_options: str) -> dict[str, Any]:
    check_known(opts or {}, set(known_options.split()), "opts")
    return {snake_case(name): value for name, value in (opts or {}).items()}


def _create_key(encryption: ClientEncryption[Any], kms_provider: str, opts: Mapping[str, Any] | None = None) -> Any:
    return encryption.create_data_key(kms_provider, **_options(opts, "masterKey keyAltNames keyMaterial"))


def _rewrap(encryption: ClientEncryption[Any], filter: Mapping[str, Any], opts: Mapping[str, Any] | None = None) -> Any:
    result = encryption.rewrap_many_data_key(filter, **_options(opts, "provider masterKey")).bulk_write_result
    if result is None:
        return {}
    document = as_document(result)
    document.pop("acknowledged")
    return {"bulkWriteResult": document}


def _encrypt(encryption: ClientEncryption[Any], value: Any, opts: Mapping[str, Any]) -> Any:
    return encryption.encrypt(value, **_options(opts, "keyId keyAltName algorithm"))


def _get_keys(encryption: ClientEncryption[Any]) -> Documents:
    return Documents(_decode(each) for each in encryption.get_keys())


def _return_unchanged(value: Any) -> Any:
    return value


OPERATIONS: dict[str, Method] = {
    "addKeyAltName": Method("add_key_alt_name", "id keyAltName", convert_result=_decode_or_none),
    "createDataKey": Method(_create_key, "kmsProvider", "opts"),
    "decrypt": Method("decrypt", "value", convert_result=_return_unchanged),
    "deleteKey": Method("delete_key", "id"),
    "encrypt": Method(_encrypt, "value opts", convert_result=_return_unchanged),
    "getKey": Method("get_key", "id", convert_result=_decode_or_none),
    "getKeyByAltName": Method("get_key_by_alt_name", "keyAltName", convert_result=_decode_or_none),
    "getKeys": Method(_get_keys, convert_result=_return_unchanged),
    "removeKeyAltName": Method("remove_key_alt_name", "id keyAltName", convert_result=_decode_or_none),
    "rewrapManyDataKey": Method(_rewrap, "filter", "opts"),
}

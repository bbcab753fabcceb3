"""Check the BSON type of a value. The type names are the names that the operator ``$type`` accepts."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Mapping
from typing import Any

from bson.binary import Binary
from bson.code import Code
from bson.dbref import DBRef
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

from tests.spec.unified.schema import FormatError

_MIN_INT32, _MAX_INT32 = -(2**31), 2**31 - 1

_CLASSES_BY_TYPE: dict[str, tuple[type, ...]] = {
    "double": (float,),
    "string": (str,),
    "object": (Mapping, DBRef),
    "array": (list,),
    "binData": (bytes, Binary, uuid.UUID),
    "undefined": (),
    "objectId": (ObjectId,),
    "bool": (bool,),
    "date": (datetime.datetime,),
    "null": (type(None),),
    "regex": (Regex, re.Pattern),
    "dbPointer": (DBRef,),
    "javascript": (Code,),
    "symbol": (str,),
    "timestamp": (Timestamp,),
    "decimal": (Decimal128,),
    "minKey": (MinKey,),
    "maxKey": (MaxKey,),
}

BSON_CLASSES = tuple({kind for kinds in _CLASSES_BY_TYPE.values() for kind in kinds} | {int})
"""Python classes of BSON values."""


def is_number(value: Any) -> bool:
    """Return True if the value is an int or a float, and not a bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_of_type(value: Any, type_name: str) -> bool:
    """Return True if `value` has the BSON type `type_name`."""
    if type_name == "number":
        return is_number(value) or isinstance(value, Decimal128)
    if type_name in ("int", "long"):
        return is_number(value) and isinstance(value, int) and _is_long(value) is (type_name == "long")
    if type_name not in _CLASSES_BY_TYPE:
        raise FormatError(f"unknown type {type_name!r}")
    return isinstance(value, _CLASSES_BY_TYPE[type_name])


def _is_long(value: int) -> bool:
    return isinstance(value, Int64) or not _MIN_INT32 <= value <= _MAX_INT32

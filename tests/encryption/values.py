"""One value of every BSON type, for tests of encryption."""

from __future__ import annotations

import datetime
import uuid

from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

EVERY_TYPE = {
    "double": 1.5,
    "string": "zwölf Boxkämpfer 🥊",
    "empty string": "",
    "object": {"a": 1, "b": {"c": [1, {"d": None}]}},
    "array": [1, "two", [3.0]],
    "binary": Binary(b"\x00\xff" * 9, 0),
    "user binary": Binary(b"\x00\xff" * 9, 128),
    "uuid": Binary.from_uuid(uuid.UUID(int=7)),
    "object id": ObjectId("5f0000000000000000000001"),
    "true": True,
    "false": False,
    "date": datetime.datetime(2020, 1, 2, 3, 4, 5, 678000),
    "regular expression": Regex("^a.*b$", "im"),
    "reference": DBRef("things", 1),
    "code": Code("x = 1"),
    "code with scope": Code("x = y", {"y": 1}),
    "int": 42,
    "negative int": -(2**31),
    "timestamp": Timestamp(123456, 7),
    "long": Int64(2**40),
    "decimal": Decimal128("1234567890.0987654321"),
    "null": None,
    "min key": MinKey(),
    "max key": MaxKey(),
    "long string": "x" * 40_000,
}
# Types that libmongocrypt encrypts deterministically.
DETERMINISTIC_TYPES = [
    "string",
    "empty string",
    "binary",
    "user binary",
    "uuid",
    "object id",
    "date",
    "regular expression",
    "code",
    "int",
    "negative int",
    "timestamp",
    "long",
    "long string",
]
# Types that libmongocrypt encrypts with the randomized algorithm.
RANDOM_TYPES = [name for name in EVERY_TYPE if name not in ("null", "min key", "max key")]

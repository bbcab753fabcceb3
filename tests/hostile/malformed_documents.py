"""Random malformed documents and messages. The seed of a campaign determines the random choices."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

import bson
from bson import Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

# Names of reply fields that the driver reads.
REPLY_FIELDS = (
    "$clusterTime", "$err", "atClusterTime", "code", "codeName", "cursor", "errInfo", "errmsg", "errorLabels",
    "firstBatch", "hosts", "id", "idx", "lastErrorObject", "n", "nModified", "nextBatch", "ns", "ok", "operationTime",
    "postBatchResumeToken", "recoveryToken", "topologyVersion", "upserted", "value", "values", "writeConcernError",
    "writeErrors", "nErrors", "nInserted", "nUpserted", "nMatched", "nDeleted", "databases", "name", "key",
)  # fmt: skip
ERROR_CODES = (0, 1, 6, 7, 11, 13, 20, 26, 43, 50, 64, 79, 89, 91, 100, 112, 133, 134, 189, 237, 251, 262, 391, 462,
         9001, 10058, 10107, 11000, 11600, 11602, 13435, 13436)  # fmt: skip
LABELS = (
    "RetryableWriteError", "TransientTransactionError", "UnknownTransactionCommitResult", "NoWritesPerformed",
    "SystemOverloadedError", "RetryableError", "ResumableChangeStreamError",
)  # fmt: skip


def nested_value(depth: int, as_array: bool) -> Any:
    """Return a document, or an array if `as_array` is true, that is nested to the given depth."""
    value: Any = 1
    for _ in range(depth):
        value = [value] if as_array else {"a": value}
    return value


_PLAIN_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 5, 2**31 - 1, -(2**31), Int64(2**63 - 1), Int64(-(2**63)), 0.0, 1.0, -1.0, 1.5,
    float("nan"), float("inf"), float("-inf"), 1e300, "", "a", "abc", "\0", "d.c", ".", "1", "é" * 100, b"", b"x" * 20,
    [], [None], [1], ["a"], [[]], [{}], [{"index": 0}], [{"index": -1, "code": 1}], [{"index": 10**6, "code": 1}], {},
    {"a": 1}, {"": ""}, {"clusterTime": 5}, {"clusterTime": Timestamp(1, 1), "x": "y" * 5000}, {"id": 1}, {"code": "x"},
    {"processId": 1, "counter": 1}, {"processId": ObjectId(b"0" * 12), "counter": "x"}, ObjectId(b"1" * 12),
    Timestamp(0, 0), Timestamp(2**32 - 1, 2**32 - 1), datetime(1970, 1, 1), datetime(9999, 1, 1), Regex("a"),
    Code("x"), Code("x", {"a": 1}), MinKey(), MaxKey(), Decimal128("1"), Decimal128("NaN"), DBRef("a", 1),
)  # fmt: skip


def random_value(rng: random.Random) -> Any:
    """Return a random value whose BSON type is random."""
    kind = rng.random()
    if kind < 0.9:
        return copy.deepcopy(rng.choice(_PLAIN_VALUES))
    if kind < 0.94:
        return nested_value(rng.choice((20, 100, 190)), rng.random() < 0.5)
    if kind < 0.96:
        return "x" * rng.choice((1000, 70_000))
    if kind < 0.98:
        return [copy.deepcopy(rng.choice(_PLAIN_VALUES)) for _ in range(rng.choice((10, 300)))]
    return {rng.choice(REPLY_FIELDS): copy.deepcopy(rng.choice(_PLAIN_VALUES)) for _ in range(5)}


def value_paths(document: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of the values in a document, including values in nested documents and arrays.
    Omit some nested values if the document has 200 paths or 20 levels.
    """
    paths: list[tuple[Any, ...]] = []
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for name, each in items:
        paths.append((*prefix, name))
        if isinstance(each, (dict, list)) and len(paths) < 200 and len(prefix) < 20:
            paths += value_paths(each, (*prefix, name))
    return paths


def _parent_of_value(document: Any, path: tuple[Any, ...]) -> Any:
    for name in path[:-1]:
        document = document[name]
    return document


def _replace_value(document: dict[str, Any], rng: random.Random) -> None:
    paths = value_paths(document)
    if paths:
        path = rng.choice(paths)
        _parent_of_value(document, path)[path[-1]] = random_value(rng)


def _remove_value(document: dict[str, Any], rng: random.Random) -> None:
    paths = value_paths(document)
    if paths:
        path = rng.choice(paths)
        del _parent_of_value(document, path)[path[-1]]


def _add_field(document: dict[str, Any], rng: random.Random) -> None:
    document[rng.choice(REPLY_FIELDS)] = random_value(rng)


def _replace_by_error(document: dict[str, Any], rng: random.Random) -> None:
    document.clear()
    document.update({"ok": 0, "errmsg": rng.choice(("no", "not master", "node is recovering", "ns not found")),
                     "code": rng.choice(ERROR_CODES), "errorLabels": rng.sample(LABELS, rng.randrange(3))})  # fmt: skip
    if rng.random() < 0.7:
        rng.choice(_CHANGE_FUNCTIONS[:3])(document, rng)


def _add_write_concern_error(document: dict[str, Any], rng: random.Random) -> None:
    error = {"code": rng.choice(ERROR_CODES), "errmsg": "late", "errInfo": {"wtimeout": True}}
    if rng.random() < 0.5:
        _replace_value(error, rng)
    document["writeConcernError"] = error


_CHANGE_FUNCTIONS: tuple[Callable[[dict[str, Any], random.Random], None], ...] = (
    _replace_value,
    _remove_value,
    _add_field,
    _replace_by_error,
    _add_write_concern_error,
)
_CHANGE_WEIGHTS = (10, 3, 4, 3, 1)


def mutate_document(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a copy of a document with one to three random changes."""
    result = copy.deepcopy(document)
    for change in rng.choices(_CHANGE_FUNCTIONS, _CHANGE_WEIGHTS, k=rng.choice((1, 1, 1, 2, 3))):
        change(result, rng)
    return result


def encode_document(document: dict[str, Any]) -> bytes:
    """Encode a document. If the package bson raises an error, encode a constant document instead."""
    try:
        return bson.encode(document)
    except Exception:
        return bson.encode({"ok": 1, "unencodable": True})


def damage_message(message: bytes, rng: random.Random) -> bytes:
    """Return a copy of a message with changed, missing, inserted or repeated bytes."""
    data = bytearray(message)
    for _ in range(rng.choice((1, 1, 2, 5))):
        kind = rng.randrange(7)
        at = rng.randrange(len(data)) if data else 0
        if kind == 0 and data:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.choice((1, 4, 16, 100))]
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.choice((1, 4, 16)))
        elif kind == 3 and len(data) >= 4:
            offset = rng.choice((0, 4, 8, 12, 16, 20, 21))
            data[offset : offset + 4] = rng.choice((-1, 0, 1, 15, 16, 2**31 - 1, -(2**31), 48_000_000)).to_bytes(
                4, "little", signed=True
            )
        elif kind == 4:
            del data[at:]
        elif kind == 5 and len(data) > 24:
            at = rng.randrange(21, len(data))
            data[at : at + 4] = rng.choice((-1, 0, 4, 5, 2**31 - 1)).to_bytes(4, "little", signed=True)
        else:
            data += bytes(data[: rng.choice((1, 16, 40))])
    return bytes(data)

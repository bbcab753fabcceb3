"""The operations of a `bulkWrite` command: from write models to encoded documents, and how many fit one message."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import bson
from bson.codec_options import CodecOptions

from gmongo._background import LongWork
from gmongo._documents import DocumentDict, Value, plain
from gmongo._server_facts import sizes
from gmongo._short_text import short
from gmongo.errors import DocumentTooLarge, InvalidOperation
from gmongo.operations.models import (
    DeleteMany,
    DeleteOne,
    InsertOne,
    ReplaceOne,
    UpdateMany,
    UpdateOne,
    check_is_mapping,
    checked_change,
)
from gmongo.operations.write import ensure_id, needs_a_reply

_INT32 = struct.Struct("<i")
_Update: TypeAlias = UpdateOne | UpdateMany | ReplaceOne[Value]
_Model: TypeAlias = InsertOne[Value] | _Update | DeleteOne | DeleteMany


class Limits(NamedTuple):
    """What one message may hold."""

    writes: int
    message_size: int
    document_size: int
    batch_size: int
    """Operations are split at this size, if there are several."""


# Every server since MongoDB 3.6 has these; the connection that is used has the last word.
USUAL_LIMITS = Limits(sizes.USUAL_WRITE_BATCH_SIZE, sizes.MAX_MESSAGE_SIZE, sizes.MAX_BSON_SIZE, sizes.MAX_MESSAGE_SIZE)


class Write:
    """One operation, encoded once.

    :param index: of the model among all models.
    :param model: what to write.
    """

    __slots__ = ("document", "encoded", "index", "kind", "multi", "namespace", "stored")

    def __init__(self, index: int, model: _Model, codec_options: CodecOptions[Value]) -> None:
        self.index = index
        self.namespace: str = model.namespace or ""
        self.document = _document_of(model)
        self.kind = next(iter(self.document))
        self.multi: bool = self.document.get("multi", False)
        self.encoded: bytes = bson.encode(self.document, False, codec_options)
        self.stored = (
            self.document["updateMods"] if isinstance(model, ReplaceOne) else self.document.get("document", {})
        )

    @property
    def inserted_id(self) -> Value:
        """The ``_id`` of the document that is inserted; None for a raw document that has none."""
        return self.document["document"].get("_id")

    def refer_to(self, namespace_index: int) -> None:
        """Say where in ``nsInfo`` the namespace stands. It is the first field, so its place in the bytes is known."""
        self.document[self.kind] = namespace_index
        start = 4 + 1 + len(self.kind) + 1
        number = _INT32.pack(namespace_index)
        if self.encoded[start : start + 4] != number:
            self.encoded = b"".join((self.encoded[:start], number, self.encoded[start + 4 :]))


class Writes:
    """The operations of a whole bulk, encoded as they are taken.

    :param models: all of them checked by `checked_models`.
    """

    __slots__ = ("_codec_options", "_encoded", "_models")

    def __init__(self, models: Iterable[_Model], codec_options: CodecOptions[Value]) -> None:
        self._models: Iterator[tuple[int, _Model]] = iter(enumerate(models))
        self._codec_options = codec_options
        self._encoded: deque[Write] = deque()  # encoded, but not taken yet

    def __bool__(self) -> bool:
        return self._ahead() is not None

    def take(self, limits: Limits, command_size: int) -> list[Write]:
        """As many as one message holds, and none if the next does not fit even alone.

        :param command_size: of the command without its operations, in bytes.
        """
        taken: list[Write] = []
        namespaces: set[str] = set()
        used = sizes.BULK_WRITE_OVERHEAD + command_size
        work = LongWork()
        while len(taken) < limits.writes:
            write = self._ahead()
            if write is None:
                break
            used += len(write.encoded)
            if write.namespace not in namespaces:
                used += len(bson.encode({"ns": write.namespace}))
            if used > (limits.batch_size if taken else limits.message_size):
                break
            namespaces.add(write.namespace)
            taken.append(self._encoded.popleft())
            work.checkpoint()
        return taken

    def give_back(self, writes: Sequence[Write]) -> None:
        """Take operations back that did not fit after all."""
        self._encoded.extendleft(reversed(writes))

    def refuse_next(self, limits: Limits) -> DocumentTooLarge:
        """The error for the next operation, which does not fit into a message."""
        write = self._ahead()
        assert write is not None
        return DocumentTooLarge(
            f"the {write.kind} at index {write.index} is {len(write.encoded)} bytes with a namespace of "
            f"{len(write.namespace)} characters, but the server takes messages of at most {limits.message_size} bytes"
        )

    def _ahead(self) -> Write | None:
        if not self._encoded:
            index, model = next(self._models, (0, None))
            if model is None:
                return None
            self._encoded.append(Write(index, model, self._codec_options))
        return self._encoded[0]


def check_size(write: Write, limits: Limits, codec_options: CodecOptions[Value]) -> None:
    """Refuse an operation that the server would refuse, where its refusal would go unseen.

    :raises DocumentTooLarge: it is larger than the server takes.
    """
    size, limit = len(write.encoded), limits.document_size
    too_large = size > limit + sizes.COMMAND_OVERHEAD
    if too_large or (size > limit and len(bson.encode(write.stored, False, codec_options)) > limit):
        raise DocumentTooLarge(
            f"the {write.kind} at index {write.index} is {size} bytes, but the server takes documents "
            f"of at most {limit} bytes"
        )


_Optional = tuple[tuple[str, Value], ...]


def checked_models(models: object) -> list[_Model]:
    """The models of a bulk, if they are a list of write models that have namespaces.

    :raises TypeError: they are no list, or one of them is no write model.
    :raises InvalidOperation: there is none, or one has no namespace.
    """
    if not isinstance(models, list):
        raise TypeError(f"models must be a list of write models, not {short(models)}")
    if not models:
        raise InvalidOperation("No operations to execute")
    work = LongWork()
    for index, model in enumerate(models):
        if not isinstance(model, (InsertOne, UpdateOne, UpdateMany, ReplaceOne, DeleteOne, DeleteMany)):
            raise TypeError(f"models[{index}] is not a write model such as InsertOne or UpdateOne: {short(model)}")
        if model.namespace is None:
            raise InvalidOperation(
                f"models[{index}], an {type(model).__name__}, has no namespace, which MongoClient.bulk_write needs"
            )
        work.checkpoint()
    return models


def check_unacknowledged_models(models: list[_Model]) -> None:
    """Refuse what a server would refuse without the application hearing of it, since there is no reply.

    :raises ConfigurationError: a model has an option that needs a reply.
    """
    for model in models:
        for name, option in (("collation", "collation"), ("arrayFilters", "array_filters")):
            if getattr(model, option, None) is not None:
                raise needs_a_reply(name)


def _document_of(model: _Model) -> DocumentDict:
    """A model as an element of ``ops``; the place of its namespace is not known yet."""
    if isinstance(model, InsertOne):
        check_is_mapping("document", model.document)
        return {"insert": 0, "document": _with_id_first(model.document)}
    if isinstance(model, (DeleteOne, DeleteMany)):
        document = {"delete": 0, "filter": model.filter, "multi": isinstance(model, DeleteMany)}
        optional: _Optional = (("collation", model.collation), ("hint", model.hint))
    else:
        document, optional = _update_of(model)
    document.update((name, value) for name, value in optional if value is not None)
    return document


def _update_of(model: _Update) -> tuple[DocumentDict, _Optional]:
    change = checked_change(model)
    document = {"update": 0, "filter": model.filter, "updateMods": change, "multi": isinstance(model, UpdateMany)}
    return document, (
        ("upsert", model.upsert),
        ("collation", model.collation),
        ("arrayFilters", None if isinstance(model, ReplaceOne) else model.array_filters),
        ("hint", model.hint),
        ("sort", None if isinstance(model, UpdateMany) else model.sort),
    )


def _with_id_first(document: Value) -> Value:
    """A document to insert. Its ``_id``, if it has none, is made here, and goes before the other fields."""
    has_id = "_id" in document
    ensure_id(document)
    fields = document if isinstance(document, dict) else plain(document)
    return fields if has_id or "_id" not in fields else {"_id": fields["_id"], **fields}

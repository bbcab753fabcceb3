"""The collections of a bucket, the properties of files, and the exclusive use of a file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from re import Pattern

from bson.codec_options import DEFAULT_CODEC_OPTIONS
from bson.regex import Regex
from gevent import getcurrent
from greenlet import greenlet

from gmongo._documents import Document, DocumentDict, Value
from gmongo._inherited_options import executor_of
from gmongo._truncated_repr import short
from gmongo.client_session import ClientSession
from gmongo.cmap.checked_out_report import greenlet_name
from gmongo.collection import Collection
from gmongo.database import Database
from gmongo.errors import ConfigurationError, InvalidOperation
from gmongo.execution.deadline import until
from gmongo.execution.sessions import checked_session
from gmongo.gridfs.errors import CorruptGridFile
from gmongo.read_preferences import Primary
from gmongo.wire.reply_schema import is_integer

DEFAULT_CHUNK_SIZE = 255 * 1024
"""The default chunk size in bytes. The document of a chunk is slightly smaller than 256 KiB."""

_FILES_INDEX = {"filename": 1, "uploadDate": 1}
_CHUNKS_INDEX = {"files_id": 1, "n": 1}


class Storage:
    """The two collections of a bucket. `root` is the root collection of the bucket, such as ``database.fs``."""

    def __init__(self, root: Collection[Value]) -> None:
        if not isinstance(root, Collection):
            raise TypeError(f"root_collection must be a Collection, not {short(root)}")
        self.executor = executor_of(root)
        self._has_checked_indexes = False
        # The application's codec options apply, because both collections contain the `_id` of a file.
        # The type registry is an exception, because GridFS defines the types of the other fields.
        codec_options = root.codec_options.with_options(type_registry=DEFAULT_CODEC_OPTIONS.type_registry)
        self.files: Collection[Value] = root.files.with_options(codec_options=codec_options)
        chunk_codec_options = codec_options.with_options(document_class=dict)
        self.chunks: Collection[Value] = root.chunks.with_options(codec_options=chunk_codec_options)

    def time_limit(self) -> AbstractContextManager[None]:
        """Return a context manager with ``timeoutMS`` as the total time limit of the block."""
        return until(self.executor.deadline())

    def ensure_indexes(self, session: ClientSession | None) -> None:
        """At the first call, create the missing indexes, but only if the bucket contains no files."""
        if self._has_checked_indexes:
            return
        files, chunks = (each.with_options(read_preference=Primary()) for each in (self.files, self.chunks))
        if files.find_one({}, {"_id": 1}, session=session) is None:
            _ensure_index(files, _FILES_INDEX, False, session)
            _ensure_index(chunks, _CHUNKS_INDEX, True, session)
        self._has_checked_indexes = True

    def remove_chunks(
        self, file_id: Value, session: ClientSession | None, chunk_ids: list[Value] | None = None
    ) -> None:
        """Remove the chunks with the IDs `chunk_ids`. None removes all chunks of the file."""
        query: DocumentDict = {"files_id": id_condition(file_id)}
        if chunk_ids is not None:
            query["_id"] = {"$in": chunk_ids}
        self.chunks.delete_many(query, session=session)


def id_query(file_id: Value) -> DocumentDict:
    """Return a query that matches only the file with the ``_id`` `file_id`."""
    return {"_id": id_condition(file_id)}


def id_condition(file_id: Value) -> Value:
    """Return a condition that matches only `file_id`, even if `file_id` is a mapping or a regular expression."""
    return {"$eq": file_id} if isinstance(file_id, (Mapping, Pattern, Regex)) else file_id


def check_acknowledged(target: Collection[Value] | Database[Value], label: str) -> None:
    """Raise ConfigurationError for an unacknowledged write concern, which hides lost chunks."""
    if not target.write_concern.acknowledged:
        raise ConfigurationError(f"{label} must use acknowledged write_concern")


def check_session(session: ClientSession | None) -> None:
    """Raise InvalidOperation for a transaction, in which the server does not list indexes."""
    checked_session(session)
    if session is not None and session.in_transaction:
        raise InvalidOperation("GridFS does not support multi-document transactions")


def _ensure_index(collection: Collection[Value], keys: Document, unique: bool, session: ClientSession | None) -> None:
    key_pairs = list(keys.items())
    present_keys = (index.get("key") for index in collection.list_indexes(session=session))
    if not any(isinstance(key, Mapping) and list(key.items()) == key_pairs for key in present_keys):
        collection.create_index(key_pairs, session=session, unique=unique)


def id_field(file: Document) -> Value:
    """Return the ``_id`` of a file's description. Raise CorruptGridFile if the ``_id`` is missing."""
    if "_id" not in file:
        raise CorruptGridFile("a file has no _id")
    return file["_id"]


def integer_field(file: Document, field: str, lowest: int, default: int | None = None) -> int:
    """Return the integer in a field, or the default. Raise CorruptGridFile for an invalid value."""
    value = file.get(field, default)
    if not is_integer(value) or value < lowest:
        raise CorruptGridFile(f"{field} of a file must be an integer from {lowest}, not {short(value)}")
    return value if isinstance(value, int) else int(value)


def chunk_data(chunk: Document) -> bytes:
    """Return the contents of a chunk. Raise CorruptGridFile if the contents are not binary data."""
    data = chunk.get("data")
    if not isinstance(data, bytes):
        raise CorruptGridFile(f"data of a chunk must be binary, not {short(data)}")
    return data


def description_field(field: str, docstring: str) -> Value:
    """Return a property whose value is a field of the file's description, or None."""
    return property(lambda file: file._description().get(field), doc=docstring)


class FileProperties:
    """Properties that :class:`GridIn` and :class:`GridOut` have in common."""

    filename: str | None = description_field("filename", "The name of the file, or None.")
    name = filename
    content_type: str | None = description_field("contentType", "The MIME type of the file, or None.")


class ExclusiveUse:
    """Context manager that rejects other greenlets during the block. Blocks may be nested."""

    def __init__(self, class_name: str) -> None:
        self._class_name = class_name
        self._user: greenlet | None = None
        self._depth = 0

    def __enter__(self) -> None:
        user = getcurrent()
        if self._user is not None and self._user is not user:
            raise InvalidOperation(
                f"the {self._class_name} is in use by greenlet {greenlet_name(self._user)}, "
                f"and greenlet {greenlet_name(user)} must not use it at the same time"
            )
        self._user = user
        self._depth += 1

    def __exit__(self, *_exception: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._user = None

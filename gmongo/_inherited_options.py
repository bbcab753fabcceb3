"""Default options of operations, common to clients, databases and collections."""

from __future__ import annotations

from typing import TypeVar, cast

from bson.codec_options import CodecOptions

from gmongo._documents import Value
from gmongo._parameter_docs import read_only
from gmongo._truncated_repr import short
from gmongo.execution.executor import Executor
from gmongo.execution.foreign_client import UnsupportedClient
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference
from gmongo.write_concern import WriteConcern

Client = TypeVar("Client")
T = TypeVar("T")

Options = tuple[CodecOptions[Value], _ReadPreference, WriteConcern, ReadConcern]
Overrides = tuple[CodecOptions[Value] | None, _ReadPreference | None, WriteConcern | None, ReadConcern | None]


class InheritedOptions:
    """Base class of clients, client options, databases and collections, with the options that operations inherit."""

    _executor: Executor  # client options have no executor

    def __init__(
        self,
        codec_options: CodecOptions[Value],
        read_preference: _ReadPreference,
        write_concern: WriteConcern,
        read_concern: ReadConcern,
    ) -> None:
        self._codec_options = _checked_instance("codec_options", codec_options, CodecOptions)
        self._read_preference = _checked_instance("read_preference", read_preference, _ReadPreference)
        self._write_concern = _checked_instance("write_concern", write_concern, WriteConcern)
        self._read_concern = _checked_instance("read_concern", read_concern, ReadConcern)

    codec_options: CodecOptions[Value] = read_only(
        "_codec_options", "The options for the encoding and decoding of documents."
    )
    read_preference: _ReadPreference = read_only("_read_preference", "The servers to which the client sends reads.")
    write_concern: WriteConcern = read_only("_write_concern", "The acknowledgement that each write waits for.")
    read_concern: ReadConcern = read_only("_read_concern", "The isolation level of reads.")


def has_class_name(class_name: str, value: object) -> bool:
    """Return True if the class of `value` or a base class is named `class_name`, in any package."""
    return type(value).__name__ == class_name or any(each.__name__ == class_name for each in type(value).__mro__)


def options_of(owner: InheritedOptions, class_name: str, overrides: Overrides) -> Options:
    """Return `overrides`, in which the option of `owner` replaces each None.

    :raises TypeError: neither the class of `owner` nor a base class has the name `class_name`.
    """
    if not has_class_name(class_name, owner):
        raise TypeError(f"{short(owner)} is not a {class_name}")
    codec_options, read_preference, write_concern, read_concern = overrides
    return (
        owner.codec_options if codec_options is None else codec_options,
        owner.read_preference if read_preference is None else read_preference,
        owner.write_concern if write_concern is None else write_concern,
        owner.read_concern if read_concern is None else read_concern,
    )


def internals_of(client: Client) -> Client:
    """Return `client` if it is from gmongo, else an object whose private attributes raise errors."""
    return client if isinstance(client, InheritedOptions) else cast(Client, UnsupportedClient(client))


def executor_of(owner: object) -> Executor:
    """Return the executor of an `owner` from gmongo, else an executor that rejects operations."""
    return owner._executor if isinstance(owner, InheritedOptions) else cast(Executor, UnsupportedClient(owner))


def _checked_instance(name: str, value: T, kind: type) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be an instance of {kind.__name__}, not {short(value)}")
    return value

"""What clients, databases and collections have in common: defaults for the operations below them."""

from __future__ import annotations

from reprlib import repr as short
from typing import Any

from bson.codec_options import CodecOptions

from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference
from gmongo.write_concern import WriteConcern


class InheritedOptions:
    """The options that operations take from the object they are called on.

    :raises TypeError: an option has the wrong type.
    """

    def __init__(
        self,
        codec_options: CodecOptions[Any],
        read_preference: _ReadPreference,
        write_concern: WriteConcern,
        read_concern: ReadConcern,
    ) -> None:
        self._codec_options: CodecOptions[Any] = _checked("codec_options", codec_options, CodecOptions)
        self._read_preference: _ReadPreference = _checked("read_preference", read_preference, _ReadPreference)
        self._write_concern: WriteConcern = _checked("write_concern", write_concern, WriteConcern)
        self._read_concern: ReadConcern = _checked("read_concern", read_concern, ReadConcern)

    @property
    def codec_options(self) -> CodecOptions[Any]:
        """How documents are encoded and decoded: :class:`bson.codec_options.CodecOptions`."""
        return self._codec_options

    @property
    def read_preference(self) -> _ReadPreference:
        """Which servers reads go to: see :mod:`gmongo.read_preferences`."""
        return self._read_preference

    @property
    def write_concern(self) -> WriteConcern:
        """Which acknowledgement writes wait for: a :class:`~gmongo.write_concern.WriteConcern`."""
        return self._write_concern

    @property
    def read_concern(self) -> ReadConcern:
        """Which isolation reads ask for: a :class:`~gmongo.read_concern.ReadConcern`."""
        return self._read_concern

    def _defaults(self, *overrides: Any) -> tuple[Any, Any, Any, Any]:
        """The four options in the constructor's order, replaced by those `overrides` that are not None."""
        own = (self._codec_options, self._read_preference, self._write_concern, self._read_concern)
        chosen = (default if given is None else given for given, default in zip(overrides, own, strict=True))
        codec_options, read_preference, write_concern, read_concern = chosen
        return codec_options, read_preference, write_concern, read_concern


def _checked(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be an instance of {kind.__name__}, not {short(value)}")
    return value

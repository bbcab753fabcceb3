"""Conversion of the merged options of a client to objects, such as a WriteConcern."""

from __future__ import annotations

from bson.codec_options import CodecOptions

from gmongo._documents import Document, Value
from gmongo.options.rules import TLS_DETAIL_OPTIONS, any_option_set
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference, make_read_preference, read_pref_mode_from_name
from gmongo.write_concern import WriteConcern


def codec_options(options: Document) -> CodecOptions[Value]:
    """Return the codec options. Raise ValueError if the option ``tzinfo`` is set, but ``tz_aware`` is not True."""
    values = {**options, "uuid_representation": options.get("uuidrepresentation")}
    return CodecOptions(**{name: values[name] for name in CodecOptions._fields if values.get(name) is not None})


def write_concern(options: Document) -> WriteConcern:
    """Return the write concern. Raise ConfigurationError if its options contradict each other."""
    return WriteConcern(options.get("w"), options.get("wtimeoutms"), options.get("journal"), options.get("fsync"))


def read_concern(options: Document) -> ReadConcern:
    """Return the read concern of the option readConcernLevel."""
    return ReadConcern(options.get("readconcernlevel"))


def read_preference(options: Document) -> _ReadPreference:
    """Return the read preference. Raise ConfigurationError for the mode primary with tags or a maximum staleness."""
    if "read_preference" in options:
        preference: _ReadPreference = options["read_preference"]
        return preference
    mode = read_pref_mode_from_name(options.get("readpreference", "primary"))
    return make_read_preference(mode, options.get("readpreferencetags"), options.get("maxstalenessseconds", -1))


def tls_enabled(options: Document) -> bool:
    """Return True if connections use TLS. Without the option tls, any TLS option enables TLS."""
    if options.get("tls") is not None:
        return bool(options["tls"])
    return any_option_set(options, TLS_DETAIL_OPTIONS)

"""Objects that a client makes of its options, after URI and keyword arguments were merged."""

from __future__ import annotations

from bson.codec_options import CodecOptions

from gmongo._documents import Document, Value
from gmongo.options.rules import TLS_DETAILS, given
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference, make_read_preference, read_pref_mode_from_name
from gmongo.write_concern import WriteConcern

# Option, and the parameter of CodecOptions that it is.
_CODEC_PARAMETERS = {
    "document_class": "document_class",
    "tz_aware": "tz_aware",
    "uuidrepresentation": "uuid_representation",
    "unicode_decode_error_handler": "unicode_decode_error_handler",
    "tzinfo": "tzinfo",
    "type_registry": "type_registry",
    "datetime_conversion": "datetime_conversion",
}


def codec_options(options: Document) -> CodecOptions[Value]:
    """How documents are encoded and decoded.

    :raises ValueError: for a `tzinfo` without ``tz_aware``.
    """
    given = {
        parameter: options[option] for option, parameter in _CODEC_PARAMETERS.items() if options.get(option) is not None
    }
    return CodecOptions(**given)


def write_concern(options: Document) -> WriteConcern:
    """The write concern of the options w, wTimeoutMS, journal and fsync.

    :raises gmongo.errors.ConfigurationError: if they contradict each other.
    """
    return WriteConcern(options.get("w"), options.get("wtimeoutms"), options.get("journal"), options.get("fsync"))


def read_concern(options: Document) -> ReadConcern:
    """The read concern of the option readConcernLevel."""
    return ReadConcern(options.get("readconcernlevel"))


def read_preference(options: Document) -> _ReadPreference:
    """The read preference: `read_preference` itself, or what readPreference and its companions describe.

    :raises gmongo.errors.ConfigurationError: for tags or maxStalenessSeconds with the mode primary.
    """
    if "read_preference" in options:
        preference: _ReadPreference = options["read_preference"]
        return preference
    mode = read_pref_mode_from_name(options.get("readpreference", "primary"))
    return make_read_preference(mode, options.get("readpreferencetags"), options.get("maxstalenessseconds", -1))


def tls_enabled(options: Document) -> bool:
    """Whether connections use TLS: as the option tls says, else if any other TLS option is given."""
    if options.get("tls") is not None:
        return bool(options["tls"])
    return given(options, TLS_DETAILS)

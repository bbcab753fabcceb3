"""Objects from the merged options of URI and keyword arguments."""

from __future__ import annotations

from bson.codec_options import CodecOptions

from gmongo._documents import Document, Value
from gmongo.options.rules import TLS_DETAILS, given
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference, make_read_preference, read_pref_mode_from_name
from gmongo.write_concern import WriteConcern

# Option names, and the corresponding parameters of CodecOptions.
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
    """Return the codec options.

    :raises ValueError: there is a `tzinfo` without ``tz_aware``.
    """
    given = {
        parameter: options[option] for option, parameter in _CODEC_PARAMETERS.items() if options.get(option) is not None
    }
    return CodecOptions(**given)


def write_concern(options: Document) -> WriteConcern:
    """Return the write concern of the options w, wTimeoutMS, journal and fsync.

    :raises gmongo.errors.ConfigurationError: the options contradict each other.
    """
    return WriteConcern(options.get("w"), options.get("wtimeoutms"), options.get("journal"), options.get("fsync"))


def read_concern(options: Document) -> ReadConcern:
    """Return the read concern of the option readConcernLevel."""
    return ReadConcern(options.get("readconcernlevel"))


def read_preference(options: Document) -> _ReadPreference:
    """Return the read preference from `read_preference`, or from readPreference and related options.

    :raises gmongo.errors.ConfigurationError: the mode primary has tags or maxStalenessSeconds.
    """
    if "read_preference" in options:
        preference: _ReadPreference = options["read_preference"]
        return preference
    mode = read_pref_mode_from_name(options.get("readpreference", "primary"))
    return make_read_preference(mode, options.get("readpreferencetags"), options.get("maxstalenessseconds", -1))


def tls_enabled(options: Document) -> bool:
    """Return True if connections use TLS. Without the option tls, any other TLS option enables TLS."""
    if options.get("tls") is not None:
        return bool(options["tls"])
    return given(options, TLS_DETAILS)

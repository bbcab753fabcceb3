"""Client options: the table of options, parsing, validation, and rules between options."""

from __future__ import annotations

from gmongo.options.client_values import codec_options, read_concern, read_preference, tls_enabled, write_concern
from gmongo.options.keywords import overriding_options, validate_keyword_options
from gmongo.options.mapping import Options
from gmongo.options.rules import check_combination
from gmongo.options.srv import srv_name
from gmongo.options.tls import tls_context

__all__ = [
    "Options",
    "check_combination",
    "codec_options",
    "overriding_options",
    "read_concern",
    "read_preference",
    "srv_name",
    "tls_context",
    "tls_enabled",
    "validate_keyword_options",
    "write_concern",
]

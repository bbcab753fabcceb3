"""Keyword options of MongoClient."""

from __future__ import annotations

from gmongo._documents import Document, DocumentDict
from gmongo.errors import ConfigurationError, InvalidURI
from gmongo.options.table import find_option, unknown_option


def validate_keyword_options(keywords: Document) -> DocumentDict:
    """Check and convert the keyword arguments of MongoClient. The last spelling of a name takes effect.

    :returns: the options by lower-case name. Times are in seconds, except ``localthresholdms`` in milliseconds.
    :raises gmongo.errors.ConfigurationError: an option is unknown, or rejects a value (this error is also a ValueError
        or a TypeError).
    :raises gmongo.errors.InvalidURI: a name and its alias have different values, or several spellings of a security
        flag, such as ``tlsInsecure``, have different values.
    """
    options: DocumentDict = {}
    names: dict[str, str] = {}
    for name, value in keywords.items():
        option = find_option(name)
        if option is None:
            raise ConfigurationError(unknown_option(name, in_uri=False))
        checked = option.check(value)
        may_differ = option.insecure is None and names.get(option.key) == name.lower()
        if options.get(option.key, checked) != checked and not may_differ:
            raise InvalidURI(f"{option.name} and {name!r} are one option: their values must not differ")
        options[option.key], names[option.key] = checked, name.lower()
    return options


def overriding_options(keywords: Document, uri: Document) -> DocumentDict:
    """Return the keyword options that override the options `uri` of a URI.

    If the URI has an option that protects the client, the value None of the keyword does not override the option.

    :raises gmongo.errors.InvalidURI: the value of a keyword is less secure than the value in the URI.
    """
    effective = {}
    for key, value in keywords.items():
        option = find_option(key)
        if option is None or key not in uri:
            effective[key] = value
            continue
        if option.insecure is not None and value is option.insecure and uri[key] is not value:
            raise InvalidURI(
                f"the URI has {option.name}={str(uri[key]).lower()}, which the keyword {option.name}={value} must not"
                " override; remove one of the two"
            )
        if value is not None or not option.protects:
            effective[key] = value
    return effective

"""Keyword options of MongoClient."""

from __future__ import annotations

from gmongo._documents import Document, DocumentDict
from gmongo.errors import ConfigurationError, InvalidURI
from gmongo.options.table import find_option, unknown_option


def validate_keyword_options(keywords: Document) -> DocumentDict:
    """Check and convert the keyword arguments of MongoClient. Return the options by lower-case name.

    If several keywords differ only in the case of the name, the last keyword takes effect. Different values of a name
    and its alias, or of a security flag such as ``tlsInsecure``, raise InvalidURI.
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
    """Return the keyword options that override options in a URI. `uri` contains the options in the URI.

    The value None does not override an option that protects the client. A less secure value raises InvalidURI.
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

"""Options given as keyword arguments of MongoClient."""

from __future__ import annotations

from gmongo._documents import Document, DocumentDict
from gmongo.errors import ConfigurationError, InvalidOption, InvalidURI
from gmongo.options.table import find, unknown_option


def validate_keyword_options(keywords: Document) -> DocumentDict:
    """Check and convert the keyword arguments of MongoClient.

    :param keywords: options by name, in any case and under any alias.
    :returns: the options by their names in lower case, aliases resolved. Times are in seconds, except
        ``localthresholdms``, which stays in milliseconds.
    :raises gmongo.errors.ConfigurationError: for an unknown option, for a value that an option does not
        accept (the error is a ValueError or a TypeError as well), and for two names of one option with
        different values. Of one name in several spellings (``appName``, ``appname``) the last one counts, unless one
        of its values is less secure than the other.
    """
    options: DocumentDict = {}
    names: dict[str, str] = {}
    for name, value in keywords.items():
        option = find(name)
        if option is None:
            raise ConfigurationError(unknown_option(name, in_uri=False))
        checked = option.check(value)
        may_differ = option.insecure is None and names.get(option.key) == name.lower()
        if options.get(option.key, checked) != checked and not may_differ:
            raise InvalidOption(f"{option.name} and {name!r} are one option: their values must not differ")
        options[option.key], names[option.key] = checked, name.lower()
    return options


def overriding(keywords: Document, uri: Document) -> DocumentDict:
    """Those keyword arguments that count where a URI has the same options. They count, except that None does not undo
    what protects.

    :param keywords: as :func:`validate_keyword_options` returns them.
    :param uri: what the URI itself says, without what DNS and the scheme add to it.
    :raises gmongo.errors.InvalidURI: for a keyword that is less secure than what the URI asks for.
    """
    counting = {}
    for key, value in keywords.items():
        option = find(key)
        if option is None or key not in uri:
            counting[key] = value
            continue
        if option.insecure is not None and value is option.insecure and uri[key] is not value:
            raise InvalidURI(
                f"the URI has {option.name}={str(uri[key]).lower()}, which the keyword {option.name}={value} must not"
                " take back, whichever names they have; remove one of the two"
            )
        if value is not None or not option.protects:
            counting[key] = value
    return counting

"""Options given as keyword arguments of MongoClient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.errors import ConfigurationError
from gmongo.options.errors import InvalidOption
from gmongo.options.table import find, unknown_option


def validate_keyword_options(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Check and convert the keyword arguments of MongoClient.

    :param keywords: options by name, in any case and under any alias.
    :returns: the options by their names in lower case, aliases resolved. Times are in seconds, except
        ``localthresholdms``, which stays in milliseconds.
    :raises gmongo.errors.ConfigurationError: for an unknown option, for a value that an option does not
        accept (the error is a ValueError or a TypeError as well), and for two names of one option with
        different values.
    """
    options: dict[str, Any] = {}
    for name, value in keywords.items():
        option = find(name)
        if option is None:
            raise ConfigurationError(unknown_option(name, in_uri=False))
        checked = option.check(value)
        if option.key in options and options[option.key] != checked:
            raise InvalidOption(f"{option.name} and {name!r} are one option: their values must not differ")
        options[option.key] = checked
    return options

"""Options in a connection string: the parser, repeated names, aliases and validation."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import unquote_plus

from gmongo._documents import Document
from gmongo.errors import ConfigurationError, InvalidOption, InvalidURI
from gmongo.options.mapping import Options
from gmongo.options.notices import notice
from gmongo.options.rules import find_tls_contradiction
from gmongo.options.table import Option, Repeat, Source, find_option, protects, unknown_option_message
from gmongo.options.uri_parts import USERINFO_RULE

_NAME_WITH_VALUE = re.compile(r"(?<![A-Za-z0-9%])([A-Za-z]+)=")

Pairs = list[tuple[str, str]]


def split_options(opts: str, validate: bool, warn: bool, normalize: bool, has_slash: bool = True) -> Options:
    """Parse the options of a connection string, as :func:`gmongo.uri_parser.split_options` describes.

    If `warn` is True, an invalid option that protects the client, such as ``tls`` or
    ``authMechanism``, is still an error. `has_slash` is False if no slash precedes the question mark,
    which may then belong to a password.
    """
    pairs = _split_pairs(opts)
    unquotable = _find_unquotable_names(pairs, has_slash and "@" not in opts)
    _refuse_contradictions(pairs)
    options = _collect_options(pairs, unquotable)
    if normalize:
        options = _replace_aliases(options)
    if not validate:
        return options
    return _validate(options, {name.lower(): name for name, _ in pairs}, warn, unquotable)


def validated(options: Document, warn: bool) -> Options:
    """Replace aliases and convert the values of options, as :func:`split_options` does."""
    return _validate(_replace_aliases(Options(options)), {name.lower(): name for name in options}, warn)


def _split_pairs(opts: str) -> Pairs:
    if "&" in opts and ";" in opts:
        raise InvalidURI("options must be separated by '&' or by ';', not by both")
    separator = ";" if ";" in opts else "&"
    pairs = []
    for pair in opts.split(separator):
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InvalidURI("options of a URI must be name=value pairs with '&' between them")
        refuse_hidden_options(value)
        option = find_option(name)
        if option is None and "@" in opts:
            raise InvalidURI(f"{USERINFO_RULE}; an '@' in the value of an option must be percent-encoded, too")
        pairs.append((name, value if option is not None and option.decodes else unquote_plus(value)))
    return pairs


def _find_unquotable_names(pairs: Pairs, may_quote: bool) -> frozenset[str]:
    """Return the lower-case names that messages must not quote, because these names may be parts of a secret.

    After an unencoded '?' in a password, or an unencoded '&' in a secret option, the rest of the
    secret looks like options. `may_quote` is False if the question mark before the options may belong
    to a password.
    """
    names = set()
    for name, _ in pairs:
        if not may_quote:
            names.add(name.lower())
        option = find_option(name)
        may_quote = may_quote and (option is None or not option.secret)
    return frozenset(names)


def refuse_hidden_options(text: str) -> None:
    """Raise InvalidURI if `text` contains ``=`` after the name of a security option."""
    for name in _NAME_WITH_VALUE.findall(text):
        option = find_option(name)
        if option is not None and option.protects:
            raise InvalidURI(
                f"{option.name}= must be an option of its own: a '?' precedes the first option, '&' each later option"
            )


def _refuse_contradictions(pairs: Pairs) -> None:
    contradiction = find_tls_contradiction({name.lower() for name, _ in pairs})
    if contradiction:
        raise InvalidURI(contradiction)
    flag_values: dict[str, str] = {}
    for name, value in pairs:
        option = find_option(name)
        if option is not None and option.insecure is not None and flag_values.setdefault(option.name, value) != value:
            name_text = f"{option.name} and its alias {option.aliases[0]}" if option.aliases else option.name
            raise InvalidURI(f"{name_text} must have the same value every time")
    if any(name.lower() == "authsource" and not value for name, value in pairs):
        raise InvalidURI("authSource must not be empty")


def _collect_options(pairs: Pairs, unquotable: Collection[str]) -> Options:
    options = Options()
    for name, value in pairs:
        option = find_option(name)
        repeat = option.repeat if option else Repeat.LAST_WINS
        if repeat is Repeat.LIST:
            options.setdefault(name, []).append(value)
            continue
        if name in options:
            if repeat is Repeat.ERROR:
                raise InvalidURI(f"{name} must not be given twice")
            option_text = "an option" if option is None and name.lower() in unquotable else f"the option {name!r}"
            notice(f"The URI has {option_text} more than once; the last value takes effect")
        options[name] = value
    return options


def _replace_aliases(options: Options) -> Options:
    """Replace aliases by canonical names. A canonical name overrides its alias if both are given."""
    result = Options()
    for name, value in options.items():
        option = find_option(name)
        canonical_name = option.name if option else name
        if option and name in option.deprecated:
            if canonical_name in options:
                remedy = f" and ignored, as its replacement {canonical_name!r} is given too"
            else:
                remedy = f"; use {canonical_name!r}"
            notice(f"The option {name!r} is deprecated{remedy}")
        if name == canonical_name.lower() or canonical_name not in options:
            result[canonical_name] = value
    return result


def _validate(
    options: Options, spelling: Mapping[str, str], warn: bool, unquotable: Collection[str] = frozenset()
) -> Options:
    """Convert the values of options. In messages, use the names in `spelling`, and omit the names in `unquotable`."""
    result = Options()
    for name, value in options.items():
        try:
            may_quote = name.lower() not in unquotable
            result[name] = _find_uri_option(spelling.get(name, name), may_quote).check(value, may_quote)
        except ConfigurationError as error:
            if not warn or protects(name):
                raise
            notice(f"{error}; the option is ignored")
    return result


def _find_uri_option(name: str, may_quote: bool) -> Option:
    option = find_option(name)
    if option is None:
        hidden = "Unknown option, whose name is not shown because it may belong to a secret that is not percent-encoded"
        raise ConfigurationError(unknown_option_message(name, in_uri=True) if may_quote else hidden)
    if option.source is Source.KEYWORD:
        raise InvalidOption(f"{option.name} must be a keyword argument; it cannot be given in a URI")
    return option

"""Regular expressions of PCRE2, as on a server."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.optional_deps import pcre2
from gmongo.testing.store.values import flags_of

# As on a server, `\w`, `\d` and the classes match ASCII only.
_ALWAYS = pcre2.ASCII
_OPTIONS = {"i": pcre2.IGNORECASE, "m": pcre2.MULTILINE, "s": pcre2.DOTALL, "x": pcre2.VERBOSE}
# Accepted options without an effect.
_IGNORED = frozenset("lu")


def is_pattern(value: Any) -> bool:
    """True if the value is a regular expression."""
    return hasattr(value, "pattern") and hasattr(value, "flags")


def compile_pattern(expression: Any, options: str | None = None) -> Any:
    """Compile a string or a regular expression.

    :param options: letters, the options of the regular expression by default.
    """
    if is_pattern(expression):
        return _compiled(expression.pattern, flags_of(expression) if options is None else options)
    return _compiled(expression, options or "")


@lru_cache(maxsize=512)
def _compiled(text: str, options: str) -> Any:
    flags = _ALWAYS
    for letter in options:
        if letter not in _OPTIONS and letter not in _IGNORED:
            raise location(51108, f"invalid flag in regex options: {letter}")
        flags |= _OPTIONS.get(letter, 0)
    try:
        return pcre2.compile(text, flags)
    except pcre2.PatternError as error:
        raise location(51091, f"Regular expression is invalid: {error}") from None

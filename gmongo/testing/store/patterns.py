"""Compile regular expressions with PCRE2, which current servers also use."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.optional_deps import pcre2
from gmongo.testing.store.values import join_flags

# `\w`, `\d` and POSIX character classes match only ASCII characters, as on a server.
_DEFAULT_FLAGS = pcre2.ASCII
_FLAGS_BY_OPTION = {"i": pcre2.IGNORECASE, "m": pcre2.MULTILINE, "s": pcre2.DOTALL, "x": pcre2.VERBOSE}
# The options that a server accepts and ignores.
_IGNORED_OPTIONS = frozenset("lu")


def is_pattern(value: Any) -> bool:
    """Return True if the value is a regular expression of BSON or of Python."""
    return hasattr(value, "pattern") and hasattr(value, "flags")


def compile_pattern(expression: Any, options: str | None = None) -> Any:
    """Compile a regular expression. `options`, such as ``im``, replace the flags of `expression`."""
    if is_pattern(expression):
        return _compile(expression.pattern, join_flags(expression) if options is None else options)
    return _compile(expression, options or "")


@lru_cache(maxsize=512)
def _compile(text: str, options: str) -> Any:
    flags = _DEFAULT_FLAGS
    for letter in options:
        if letter not in _FLAGS_BY_OPTION and letter not in _IGNORED_OPTIONS:
            raise error(51108, f"invalid flag in regex options: {letter}")
        flags |= _FLAGS_BY_OPTION.get(letter, 0)
    try:
        return pcre2.compile(text, flags)
    except pcre2.PatternError as problem:
        raise error(51091, f"Regular expression is invalid: {problem}") from None

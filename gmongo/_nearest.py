"""Search for the known name that is most similar to an unknown name, for error messages."""

from __future__ import annotations

from collections.abc import Iterable

# The lowest similarity of a hint, from 0 to 1. No option reaches this similarity to "safe", which has no correct hint.
_LOWEST_SIMILARITY = 0.65


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`. Return None if no known name is similar."""
    import difflib  # imported here, because only error messages need difflib

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_LOWEST_SIMILARITY)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for an error message with the most similar known name, or an empty text if no name is similar."""
    match = nearest(name, known)
    return f" (did you mean {match!r}?)" if match else ""

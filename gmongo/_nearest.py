"""Most similar name, for errors about unknown names."""

from __future__ import annotations

from collections.abc import Iterable

_NEAR = 0.65  # similarity from 0 to 1, above the similarity of legacy options such as safe to any option


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None."""
    import difflib  # late: only errors need it

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_NEAR)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the most similar name for an error message, or an empty text."""
    match = nearest(name, known)
    return f" (did you mean {match!r}?)" if match else ""

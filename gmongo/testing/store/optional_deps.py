"""Import the packages that gmongo requires only for the store."""

from __future__ import annotations

try:
    import pcre2
    from sortedcontainers import SortedDict
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"gmongo.testing needs {error.name}, which is not installed: run pip install 'gmongo[testing]'", name=error.name
    ) from error

__all__ = ["SortedDict", "pcre2"]

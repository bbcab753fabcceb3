"""Import the packages that the store requires and gmongo does not require."""

from __future__ import annotations

try:
    import pcre2
    from sortedcontainers import SortedDict
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"gmongo.testing needs {error.name}, which is not installed: run pip install 'gmongo[testing]'", name=error.name
    ) from error

__all__ = ["SortedDict", "pcre2"]

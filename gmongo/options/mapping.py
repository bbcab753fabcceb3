"""Case-insensitive mapping of options."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from typing import Any

from gmongo.options.table import SECRET_OPTION_NAMES


class Options(UserDict[str, Any]):
    """Mapping of options with case-insensitive names. Iteration yields lower-case names, and `repr` hides secrets."""

    def __getitem__(self, name: str) -> Any:
        return self.data[name.lower()]

    def __setitem__(self, name: str, value: object) -> None:
        self.data[name.lower()] = value

    def __delitem__(self, name: str) -> None:
        del self.data[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self.data

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            return self.data == {name.lower(): value for name, value in other.items()}
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr({name: "<hidden>" if name in SECRET_OPTION_NAMES else value for name, value in self.data.items()})

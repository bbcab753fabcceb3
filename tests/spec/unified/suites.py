"""Files in the unified test format, and default options of their clients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from bson.json_util import JSONOptions, loads

from tests.spec.specifications import SpecFile, of_kind

# The files need the final number of retries of Client Backpressure, which is not the default of gmongo. A simulated
# server needs no long backoff.
CLIENT_OPTIONS: Mapping[str, Any] = {"maxAdaptiveRetries": 2, "baseBackoffMS": 5}
"""Default options of all clients."""

_EXTENDED_JSON = JSONOptions(tz_aware=False)
_INVALID, _VALID_FAIL = "invalid", "valid-fail"


@cache
def invalid() -> tuple[SpecFile, ...]:
    """Return the files with invalid format."""
    return tuple(file for file in of_kind("unified") if file.path.parent.name == _INVALID)


@cache
def valid_fail() -> tuple[SpecFile, ...]:
    """Return the files with failing cases."""
    return tuple(file for file in of_kind("unified") if file.path.parent.name == _VALID_FAIL)


@cache
def valid_pass() -> tuple[SpecFile, ...]:
    """Return all other files."""
    return tuple(file for file in of_kind("unified") if file.path.parent.name not in (_INVALID, _VALID_FAIL))


def read(file: SpecFile) -> dict[str, Any]:
    """Read the content of a file as BSON values."""
    content: dict[str, Any] = loads(file.path.read_text("utf-8"), json_options=_EXTENDED_JSON)
    return content

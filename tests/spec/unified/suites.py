"""The official files in the unified test format, and the default options of client entities."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from bson.json_util import JSONOptions, loads

from tests.spec.specifications import SpecFile, files_of_kind

# The files and the final Client Backpressure specification expect two retries. By default, gmongo
# retries five times. The backoff is short, because a simulated server needs no time to recover.
CLIENT_OPTIONS: Mapping[str, Any] = {"maxAdaptiveRetries": 2, "baseBackoffMS": 5}
"""Default options of all clients."""

_EXTENDED_JSON = JSONOptions(tz_aware=False)
_INVALID, _VALID_FAIL = "invalid", "valid-fail"


@cache
def invalid_files() -> tuple[SpecFile, ...]:
    """Return the files in folders ``invalid``, which violate the format."""
    return tuple(file for file in files_of_kind("unified") if file.path.parent.name == _INVALID)


@cache
def failing_files() -> tuple[SpecFile, ...]:
    """Return the files in folders ``valid-fail``, whose cases must fail."""
    return tuple(file for file in files_of_kind("unified") if file.path.parent.name == _VALID_FAIL)


@cache
def passing_files() -> tuple[SpecFile, ...]:
    """Return the files outside of folders ``invalid`` and ``valid-fail``. Their cases must pass."""
    return tuple(file for file in files_of_kind("unified") if file.path.parent.name not in (_INVALID, _VALID_FAIL))


def read_file(file: SpecFile) -> dict[str, Any]:
    """Return the content of a file, with BSON values instead of Extended JSON."""
    content: dict[str, Any] = loads(file.path.read_text("utf-8"), json_options=_EXTENDED_JSON)
    return content

"""The files in the unified test format, and what is special about them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from bson.json_util import JSONOptions, loads

from tests.spec.specifications import File, of_kind

# The final policy of Client Backpressure, which the files take for granted; gmongo's default is the earlier one. And
# it need not wait as long between its attempts as it would for a real server.
CLIENT_OPTIONS: Mapping[str, Any] = {"maxAdaptiveRetries": 2, "baseBackoffMS": 5}
"""What all clients have unless they say otherwise."""

_EXTENDED_JSON = JSONOptions(tz_aware=False)
_INVALID, _VALID_FAIL = "invalid", "valid-fail"


@cache
def invalid() -> tuple[File, ...]:
    """The files that are not in the format."""
    return tuple(file for file in of_kind("unified") if file.path.parent.name == _INVALID)


@cache
def valid_fail() -> tuple[File, ...]:
    """The files whose cases must fail."""
    return tuple(file for file in of_kind("unified") if file.path.parent.name == _VALID_FAIL)


@cache
def valid_pass() -> tuple[File, ...]:
    """All other files."""
    return tuple(file for file in of_kind("unified") if file.path.parent.name not in (_INVALID, _VALID_FAIL))


def read(file: File) -> dict[str, Any]:
    """The content of a file anew, as BSON values."""
    content: dict[str, Any] = loads(file.path.read_text("utf-8"), json_options=_EXTENDED_JSON)
    return content

"""Validate files with the JSON schema of the unified test format.

The runner validates the names and arguments of operations, because the schema does not define the
names and arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft201909Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from tests.spec.specifications import path_of

NEWEST_VERSION = (1, 28)
"""Newest supported version of the format."""


class FormatError(Exception):
    """A file violates the unified test format, or uses a version that the runner does not support."""


def check(document: Mapping[str, Any]) -> None:
    """Validate the content of a file."""
    error = best_match(_validator().iter_errors(document))
    if error is not None:
        raise FormatError(f"{error.json_path}: {error.message}")
    check_version(document["schemaVersion"])


def check_version(text: str) -> None:
    """Check that the runner supports a version of the format."""
    major, minor = version(text)[:2]
    if major != NEWEST_VERSION[0] or minor > NEWEST_VERSION[1]:
        raise FormatError(f"schemaVersion must be 1.0 to {NEWEST_VERSION[0]}.{NEWEST_VERSION[1]}, was {text}")


@cache
def version(text: str) -> tuple[int, int, int]:
    """Return the three numbers of a version string, such as (4, 4, 0) for ``"4.4"``."""
    major, minor, patch = ([int(part) for part in text.split(".")] + [0, 0])[:3]
    return major, minor, patch


@cache
def _validator() -> Draft201909Validator:
    return Draft201909Validator(json.loads(path_of("schema-latest.json").read_text("utf-8")))

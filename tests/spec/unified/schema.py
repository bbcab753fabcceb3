"""Whether a file is in the unified test format, in a version that the runner knows.

The official JSON schema beside the tests is the judge; ``createEntities`` operations, operations' names and their
arguments are not in it, and are checked where they are carried out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft201909Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from tests.spec.specifications import path_of

NEWEST = (1, 28)
"""The newest version of the format that the runner knows."""


class FormatError(Exception):
    """The file, or a part of it, is not in the format, or asks for what the runner does not know."""


def check(document: Mapping[str, Any]) -> None:
    """Refuse a file that is not in the format.

    :param document: its content, as plain JSON.
    :raises FormatError: always with the place and the reason.
    """
    error = best_match(_validator().iter_errors(document))
    if error is not None:
        raise FormatError(f"{error.json_path}: {error.message}")
    check_version(document["schemaVersion"])


def check_version(text: str) -> None:
    """Refuse a version of the format that the runner does not know.

    :raises FormatError: it is another major version, or too new.
    """
    major, minor = version(text)[:2]
    if major != NEWEST[0] or minor > NEWEST[1]:
        raise FormatError(f"schemaVersion must be 1.0 to {NEWEST[0]}.{NEWEST[1]}, was {text}")


@cache
def version(text: str) -> tuple[int, int, int]:
    """A version string as numbers: ``"4.4"`` is (4, 4, 0)."""
    major, minor, patch = ([int(part) for part in text.split(".")] + [0, 0])[:3]
    return major, minor, patch


@cache
def _validator() -> Draft201909Validator:
    return Draft201909Validator(json.loads(path_of("schema-latest.json").read_text("utf-8")))

"""Compare actual values with expected values (section "Evaluating Matches" of the unified test
format).
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from typing import Any

from bson.json_util import JSONOptions, loads

from tests.spec.unified.bson_types import is_number, is_of_type
from tests.spec.unified.schema import FormatError

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()
"""Marker of a missing value."""

_EXTENDED_JSON = JSONOptions(tz_aware=False)


class Mismatch(AssertionError):
    """The actual value does not match the expected value."""


class Matcher:
    """Comparison of actual values with expected values."""

    def __init__(self, find_entity: Callable[[str], Any], find_lsid: Callable[[str], Any]) -> None:
        self._find_entity = find_entity
        self._find_lsid = find_lsid

    def check(self, expected: Any, actual: Any, is_root: bool = True, path: str = "") -> None:
        """Compare an actual value with an expected value."""
        operator = _operator(expected)
        if operator is not None:
            self._apply(operator, expected[operator], actual, is_root, path)
        elif isinstance(expected, Mapping):
            self._check_document(expected, actual, is_root, path)
        elif isinstance(expected, list):
            self._check_array(expected, actual, path)
        else:
            _check_value(expected, actual, path)

    def matches(self, expected: Any, actual: Any, is_root: bool = True) -> bool:
        try:
            self.check(expected, actual, is_root)
        except Mismatch:
            return False
        return True

    def check_documents(self, expected: Any, actual: Any, path: str = "") -> None:
        """Compare the documents of a cursor with the expected documents.

        Each document is a root document, which may have additional fields.
        """
        if not isinstance(expected, list):
            self.check(expected, actual, path=path)
            return
        _check_length(expected, actual, path)
        for index, (required, element) in enumerate(zip(expected, actual, strict=True)):
            self.check(required, element, path=f"{path}[{index}]")

    def _check_document(self, expected: Mapping[str, Any], actual: Any, is_root: bool, path: str) -> None:
        if not isinstance(actual, Mapping):
            raise Mismatch(f"{path or 'the value'} must be a document like {expected}, was {actual!r}")
        for key, required in expected.items():
            self.check(required, actual.get(key, MISSING), False, f"{path}.{key}")
        unexpected = set() if is_root else set(actual) - set(expected)
        if unexpected:
            raise Mismatch(f"{path} must not have the fields {sorted(unexpected)}, was {actual!r}")

    def _check_array(self, expected: list[Any], actual: Any, path: str) -> None:
        _check_length(expected, actual, path)
        for index, (required, element) in enumerate(zip(expected, actual, strict=True)):
            self.check(required, element, False, f"{path}[{index}]")

    def _apply(self, operator: str, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        method = _OPERATORS.get(operator)
        if method is None:
            raise FormatError(f"unknown operator {operator} at {path}")
        method(self, operand, actual, is_root, path)

    def _check_exists(self, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        if operand is not (actual is not MISSING):
            raise Mismatch(f"{path} must {'' if operand else 'not '}exist, was {actual!r}")

    def _check_type(self, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        names = [operand] if isinstance(operand, str) else operand
        if actual is MISSING or not any(is_of_type(actual, name) for name in names):
            raise Mismatch(f"{path} must be of type {operand}, was {actual!r}")

    def _match_entity(self, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        self.check(self._find_entity(operand), actual, is_root, path)

    def _match_hex_bytes(self, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        required = hex_bytes(operand)
        if actual != required:
            raise Mismatch(f"{path} must be {required!r}, was {actual!r}")

    def _check_unset_or_match(self, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        if actual is not MISSING and actual is not None:
            self.check(operand, actual, is_root, path)

    def _check_session_lsid(self, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        if actual != self._find_lsid(operand):
            raise Mismatch(f"{path} must be the ID of {operand}, {self._find_lsid(operand)}, was {actual!r}")

    def _check_lte(self, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        if not is_number(operand):
            raise FormatError(f"the operand of $$lte must be a number, was {operand!r}")
        if not is_number(actual) or actual > operand:
            raise Mismatch(f"{path} must be at most {operand}, was {actual!r}")

    def _match_as_document(self, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        if not isinstance(actual, str):
            raise Mismatch(f"{path} must be a string of Extended JSON, was {actual!r}")
        try:
            document = loads(actual, json_options=_EXTENDED_JSON)
        except ValueError as error:
            raise Mismatch(f"{path} must be a string of Extended JSON ({error}), was {actual!r}")
        self.check(operand, document, False, path)

    def _match_as_root(self, operand: Any, actual: Any, is_root: bool, path: str) -> None:
        self.check(operand, actual, True, path)


_OPERATORS: dict[str, Callable[[Matcher, Any, Any, bool, str], None]] = {
    "$$exists": Matcher._check_exists,
    "$$type": Matcher._check_type,
    "$$matchesEntity": Matcher._match_entity,
    "$$matchesHexBytes": Matcher._match_hex_bytes,
    "$$unsetOrMatches": Matcher._check_unset_or_match,
    "$$sessionLsid": Matcher._check_session_lsid,
    "$$lte": Matcher._check_lte,
    "$$matchAsDocument": Matcher._match_as_document,
    "$$matchAsRoot": Matcher._match_as_root,
}


def hex_bytes(text: Any) -> bytes:
    """Return the bytes of a hexadecimal string such as ``"12ab"``."""
    try:
        return binascii.unhexlify(text)
    except (TypeError, ValueError) as error:
        raise FormatError(f"the text must be hexadecimal bytes, was {text!r}: {error}")


def _operator(expected: Any) -> str | None:
    if not isinstance(expected, Mapping) or len(expected) != 1:
        return None
    key = next(iter(expected))
    return key if key.startswith("$$") else None


def _check_length(expected: list[Any], actual: Any, path: str) -> None:
    if not isinstance(actual, list):
        raise Mismatch(f"{path or 'the value'} must be an array like {expected}, was {actual!r}")
    if len(actual) != len(expected):
        raise Mismatch(f"{path or 'the array'} must have {len(expected)} elements, {expected}, was {actual!r}")


def _check_value(expected: Any, actual: Any, path: str) -> None:
    if is_number(expected):
        is_equal = is_number(actual) and expected == actual
    else:
        is_equal = type(expected) is type(actual) and expected == actual
    if not is_equal:
        raise Mismatch(f"{path or 'the value'} must be {expected!r}, was {actual!r}")

"""Compare the error of an operation with the expected error in ``expectError``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gmongo.errors import BulkWriteError, ClientBulkWriteException, NotPrimaryError, OperationFailure, PyMongoError
from tests.spec.unified.matching import MISSING, Matcher, Mismatch
from tests.spec.unified.results import as_document
from tests.spec.unified.schema import FormatError

# Names of error codes that occur in write errors, which have no field ``codeName``.
_CODE_NAMES = {64: "WriteConcernTimeout", 91: "ShutdownInProgress", 100: "UnsatisfiableWriteConcern"}
_CODE_NAMES |= {112: "WriteConflict", 121: "DocumentValidationFailure", 11000: "DuplicateKey", 11601: "Interrupted"}


def check_error(expected: Mapping[str, Any], error: Exception, matcher: Matcher) -> None:
    """Compare the error of an operation with ``expectError``."""
    for name, value in expected.items():
        if name not in _CHECKS:
            raise FormatError(f"unknown expectation {name} of an error")
        _CHECKS[name](value, error, matcher)


def _check(condition: bool, error: Exception, expectation: str) -> None:
    if not condition:
        details = getattr(error, "details", None)
        raise Mismatch(f"the error must {expectation}, was {type(error).__name__}: {error} {details!s:.300}") from error


def _top_level_error(error: Exception) -> Exception:
    """Return the top-level error in a client bulk write error. In all other cases, return `error`."""
    inner = error.error if isinstance(error, ClientBulkWriteException) else None
    return inner if isinstance(inner, Exception) else error


def _error_documents(error: Exception) -> Iterator[Mapping[str, Any]]:
    """Yield the server's documents in an error: the error reply, and the errors of a bulk write."""
    main = _top_level_error(error)
    details = getattr(main, "details", None)
    if isinstance(details, Mapping):
        yield details
        if not isinstance(main, ClientBulkWriteException):
            yield from details.get("writeErrors", [])
            yield from details.get("writeConcernErrors", [])


def _check_client_error(expected: bool, error: Exception, matcher: Matcher) -> None:
    is_server_error = isinstance(_top_level_error(error), (OperationFailure, NotPrimaryError))
    _check(expected is not is_server_error, error, f"{'' if expected else 'not '}come from the client")


def _check_timeout_error(expected: bool, error: Exception, matcher: Matcher) -> None:
    is_timeout = isinstance(error, PyMongoError) and error.timeout
    _check(expected is is_timeout, error, f"{'' if expected else 'not '}be a timeout")


def _check_error_text(expected: str, error: Exception, matcher: Matcher) -> None:
    texts = [str(_top_level_error(error)), *(str(each.get("errmsg", "")) for each in _error_documents(error))]
    _check(any(expected.lower() in text.lower() for text in texts), error, f"contain {expected!r}")


def _check_error_code(expected: int, error: Exception, matcher: Matcher) -> None:
    codes = [each.get("code") for each in _error_documents(error)] + [getattr(_top_level_error(error), "code", None)]
    _check(expected in codes, error, f"have the code {expected}")


def _check_error_code_name(expected: str, error: Exception, matcher: Matcher) -> None:
    actual = {each.get("codeName", _CODE_NAMES.get(each.get("code", 0), "")) for each in _error_documents(error)}
    _check(expected.lower() in {name.lower() for name in actual}, error, f"have the code name {expected}")


def _check_labels(expected: list[str], error: Exception, matcher: Matcher) -> None:
    for label in expected:
        _check(isinstance(error, PyMongoError) and error.has_error_label(label), error, f"have the label {label}")


def _check_absent_labels(labels: list[str], error: Exception, matcher: Matcher) -> None:
    for label in labels:
        absent = not (isinstance(error, PyMongoError) and error.has_error_label(label))
        _check(absent, error, f"not have the label {label}")


def _check_result(expected: Any, error: Exception, matcher: Matcher) -> None:
    partial_result: Any = MISSING
    if isinstance(error, BulkWriteError):
        partial_result = as_document(error.details)
    elif isinstance(error, ClientBulkWriteException):
        partial_result = as_document(error.partial_result)
    matcher.check(expected, partial_result, path="the error's result")


def _rename_fields(error: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the fields of a server's error document to the names in the unified test format."""
    names = {"errmsg": "message", "errInfo": "details"}
    return {names.get(name, name): value for name, value in error.items()}


def _check_write_errors(expected: Mapping[str, Any], error: Exception, matcher: Matcher) -> None:
    _check(isinstance(error, ClientBulkWriteException), error, "come from a client bulk write")
    actual = {str(each["idx"]): _rename_fields(each) for each in error.write_errors}  # type: ignore[attr-defined]
    _check(set(actual) == set(expected), error, f"have write errors at {list(expected)}")
    for index, expected_error in expected.items():
        matcher.check(expected_error, actual[index], path=f"writeErrors.{index}")


def _check_write_concern_errors(expected: list[Any], error: Exception, matcher: Matcher) -> None:
    _check(isinstance(error, ClientBulkWriteException), error, "come from a client bulk write")
    actual = [_rename_fields(each) for each in error.write_concern_errors]  # type: ignore[attr-defined]
    matcher.check_documents(expected, actual, "writeConcernErrors")


def _check_response(expected: Mapping[str, Any], error: Exception, matcher: Matcher) -> None:
    matcher.check(expected, getattr(_top_level_error(error), "details", MISSING), path="errorResponse")


_CHECKS: dict[str, Callable[[Any, Exception, Matcher], None]] = {
    "isError": lambda expected, error, matcher: None,
    "isClientError": _check_client_error,
    "isTimeoutError": _check_timeout_error,
    "errorContains": _check_error_text,
    "errorCode": _check_error_code,
    "errorCodeName": _check_error_code_name,
    "errorLabelsContain": _check_labels,
    "errorLabelsOmit": _check_absent_labels,
    "expectResult": _check_result,
    "writeErrors": _check_write_errors,
    "writeConcernErrors": _check_write_concern_errors,
    "errorResponse": _check_response,
}

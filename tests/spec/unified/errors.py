"""Whether an error is the one that a test expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gmongo.errors import BulkWriteError, ClientBulkWriteException, NotPrimaryError, OperationFailure, PyMongoError
from tests.spec.unified.matching import MISSING, Matcher, Mismatch
from tests.spec.unified.results import as_document
from tests.spec.unified.schema import FormatError

# For errors in a list of write errors, which have a code without its name.
_CODE_NAMES = {64: "WriteConcernTimeout", 91: "ShutdownInProgress", 100: "UnsatisfiableWriteConcern"}
_CODE_NAMES |= {112: "WriteConflict", 121: "DocumentValidationFailure", 11000: "DuplicateKey", 11601: "Interrupted"}


def check_error(expected: Mapping[str, Any], error: Exception, matcher: Matcher) -> None:
    """Compare an error with ``expectError``.

    :raises Mismatch: it is not as expected.
    """
    for name, value in expected.items():
        if name not in _CHECKS:
            raise FormatError(f"unknown expectation {name} of an error")
        _CHECKS[name](value, error, matcher)


def _check(holds: bool, error: Exception, what: str) -> None:
    if not holds:
        details = getattr(error, "details", None)
        raise Mismatch(f"the error must {what}, was {type(error).__name__}: {error} {details!s:.300}") from error


def _main(error: Exception) -> Exception:
    """The top-level error of a bulk write of a client; any other error is that itself."""
    inner = error.error if isinstance(error, ClientBulkWriteException) else None
    return inner if isinstance(inner, Exception) else error


def _details(error: Exception) -> Iterator[Mapping[str, Any]]:
    """The documents of the server in an error: its reply, or the errors of a bulk write."""
    main = _main(error)
    details = getattr(main, "details", None)
    if isinstance(details, Mapping):
        yield details
        if not isinstance(main, ClientBulkWriteException):
            yield from details.get("writeErrors", [])
            yield from details.get("writeConcernErrors", [])


def _is_client_error(wanted: bool, error: Exception, matcher: Matcher) -> None:
    of_server = isinstance(_main(error), (OperationFailure, NotPrimaryError))
    _check(wanted is not of_server, error, f"{'' if wanted else 'not '}come from the client")


def _is_timeout_error(wanted: bool, error: Exception, matcher: Matcher) -> None:
    timeout = isinstance(error, PyMongoError) and error.timeout
    _check(wanted is timeout, error, f"{'' if wanted else 'not '}be a timeout")


def _error_contains(wanted: str, error: Exception, matcher: Matcher) -> None:
    texts = [str(_main(error)), *(str(each.get("errmsg", "")) for each in _details(error))]
    _check(any(wanted.lower() in text.lower() for text in texts), error, f"contain {wanted!r}")


def _error_code(wanted: int, error: Exception, matcher: Matcher) -> None:
    codes = [each.get("code") for each in _details(error)] + [getattr(_main(error), "code", None)]
    _check(wanted in codes, error, f"have the code {wanted}")


def _error_code_name(wanted: str, error: Exception, matcher: Matcher) -> None:
    found = {each.get("codeName", _CODE_NAMES.get(each.get("code", 0), "")) for each in _details(error)}
    _check(wanted.lower() in {name.lower() for name in found}, error, f"have the code name {wanted}")


def _labels_contain(wanted: list[str], error: Exception, matcher: Matcher) -> None:
    for label in wanted:
        _check(isinstance(error, PyMongoError) and error.has_error_label(label), error, f"have the label {label}")


def _labels_omit(unwanted: list[str], error: Exception, matcher: Matcher) -> None:
    for label in unwanted:
        absent = not (isinstance(error, PyMongoError) and error.has_error_label(label))
        _check(absent, error, f"not have the label {label}")


def _result(wanted: Any, error: Exception, matcher: Matcher) -> None:
    partial: Any = MISSING
    if isinstance(error, BulkWriteError):
        partial = as_document(error.details)
    elif isinstance(error, ClientBulkWriteException):
        partial = as_document(error.partial_result)
    matcher.check(wanted, partial, place="the error's result")


def _plain(error: Mapping[str, Any]) -> dict[str, Any]:
    """An error of the server with the names that the tests use."""
    names = {"errmsg": "message", "errInfo": "details"}
    return {names.get(name, name): value for name, value in error.items()}


def _write_errors(wanted: Mapping[str, Any], error: Exception, matcher: Matcher) -> None:
    _check(isinstance(error, ClientBulkWriteException), error, "be of a bulk write of a client")
    found = {str(each["idx"]): _plain(each) for each in error.write_errors}  # type: ignore[attr-defined]
    _check(set(found) == set(wanted), error, f"have write errors at {list(wanted)}")
    for index, one in wanted.items():
        matcher.check(one, found[index], place=f"writeErrors.{index}")


def _write_concern_errors(wanted: list[Any], error: Exception, matcher: Matcher) -> None:
    _check(isinstance(error, ClientBulkWriteException), error, "be of a bulk write of a client")
    found = [_plain(each) for each in error.write_concern_errors]  # type: ignore[attr-defined]
    matcher.check_documents(wanted, found, "writeConcernErrors")


def _response(wanted: Mapping[str, Any], error: Exception, matcher: Matcher) -> None:
    matcher.check(wanted, getattr(_main(error), "details", MISSING), place="errorResponse")


_CHECKS: dict[str, Callable[[Any, Exception, Matcher], None]] = {
    "isError": lambda wanted, error, matcher: None,
    "isClientError": _is_client_error,
    "isTimeoutError": _is_timeout_error,
    "errorContains": _error_contains,
    "errorCode": _error_code,
    "errorCodeName": _error_code_name,
    "errorLabelsContain": _labels_contain,
    "errorLabelsOmit": _labels_omit,
    "expectResult": _result,
    "writeErrors": _write_errors,
    "writeConcernErrors": _write_concern_errors,
    "errorResponse": _response,
}

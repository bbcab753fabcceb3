"""Operations of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gmongo.client_session import ClientSession
from tests.spec.unified.operations.method import Function, Method, Operation
from tests.spec.unified.schema import FormatError

if TYPE_CHECKING:
    from tests.spec.unified.runner import Run

_TRANSACTION_OPTIONS = "readConcern writeConcern readPreference maxCommitTimeMS"
_TIMEOUT_OPTION = "timeoutMS"
_WITH_TRANSACTION = Method("with_transaction", "callback", f"{_TRANSACTION_OPTIONS} {_TIMEOUT_OPTION}")


def _with_transaction(run: Run, session: ClientSession, callback: list[Mapping[str, Any]], **options: Any) -> None:
    def run_operations(_session: ClientSession) -> None:
        for operation in callback:
            run.execute(operation, propagate=True)

    if not isinstance(callback, list):
        raise FormatError(f"callback must be a list of operations, was {callback!r}")
    _WITH_TRANSACTION.run(run, session, {"callback": run_operations, **options})


OPERATIONS: dict[str, Operation] = {
    "abortTransaction": Method("abort_transaction", "", _TIMEOUT_OPTION),
    "commitTransaction": Method("commit_transaction", "", _TIMEOUT_OPTION),
    "endSession": Method("end_session"),
    "startTransaction": Method("start_transaction", "", _TRANSACTION_OPTIONS, convert_result=lambda _context: None),
    "withTransaction": Function(_with_transaction),
}

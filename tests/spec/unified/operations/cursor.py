"""Operations of cursors and change streams."""

from __future__ import annotations

from tests.spec.unified.operations.method import Method

OPERATIONS: dict[str, Method] = {
    "close": Method("close"),
    "iterateOnce": Method("iterate_once"),
    "iterateUntilDocumentOrError": Method("iterate_until_document"),
}

"""The operation that creates a change stream of a client, a database or a collection."""

from __future__ import annotations

from tests.spec.unified.cursors import CursorEntity
from tests.spec.unified.operations.method import Method

WATCH = Method(
    "watch",
    "pipeline",
    "fullDocument fullDocumentBeforeChange resumeAfter startAfter startAtOperationTime session comment batchSize"
    " maxAwaitTimeMS collation showExpandedEvents timeoutMS",
    convert_result=CursorEntity,
)
"""Operation ``createChangeStream``, which opens the cursor immediately."""

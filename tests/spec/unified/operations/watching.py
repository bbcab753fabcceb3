"""Opening change streams, which clients, databases and collections do alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.spec.unified.cursors import CursorEntity
from tests.spec.unified.operations.method import Method

if TYPE_CHECKING:
    from tests.spec.unified.runner import Run


class _Watch(Method):
    def run(self, run: Run, target: Any, arguments: Mapping[str, Any]) -> CursorEntity:
        stream: CursorEntity = super().run(run, target, arguments)
        stream.timeout_ms = arguments.get("timeoutMS")
        return stream


WATCH = _Watch(
    "watch",
    "pipeline",
    "fullDocument fullDocumentBeforeChange resumeAfter startAfter startAtOperationTime session comment batchSize"
    " maxAwaitTimeMS collation showExpandedEvents",
    show=CursorEntity,
)
"""``createChangeStream``: the driver opens the cursor at once. Its ``timeoutMS`` is for each iteration too."""

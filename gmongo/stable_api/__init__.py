"""Find out what stands in the way of ``ServerApi("1", strict=True)``.

``audit = Audit()``, ``MongoClient(event_listeners=[audit])``, and after a while ``print(audit.report())``; or, for a
whole program, ``python -m gmongo.stable_api app.py``.
"""

from __future__ import annotations

from gmongo.stable_api.audit import Audit
from gmongo.stable_api.judgement import Finding, Remark, Verdict

__all__ = ["Audit", "Finding", "Remark", "Verdict"]

"""Find the commands of an application that prevent the use of ``ServerApi("1", strict=True)``.

In a program, use ``audit = Audit()``, ``MongoClient(event_listeners=[audit])``, and later
``print(audit.report())``. For a whole program, run ``python -m gmongo.stable_api app.py``.
"""

from __future__ import annotations

from gmongo.stable_api.audit import Audit
from gmongo.stable_api.rules import Finding, Remark, Verdict

__all__ = ["Audit", "Finding", "Remark", "Verdict"]

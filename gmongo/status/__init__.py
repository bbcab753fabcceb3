"""State of the MongoDB clients of one or several processes: in a browser, as JSON, or in a terminal.

The state is visible only if an application mounts the page (:class:`StatusPage`) or publishes its
state (:func:`publish`). Each request reads the current state: servers, pools, operations, waiting
greenlets, and recent events. The page contains no secrets and no documents. The page shows texts of
queries only if `query_text` is True.

The page shows the names of hosts, databases and collections. Protect the page like other
administration pages.
"""

from __future__ import annotations

from gmongo.status.page import StatusPage
from gmongo.status.state import process_state
from gmongo.status.workers import publish, worker_states

__all__ = ["StatusPage", "process_state", "publish", "worker_states"]

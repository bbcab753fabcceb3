"""The state of the MongoDB clients of a process, to be looked at: in a browser, as JSON, in a terminal.

Nothing is shown unless an application mounts the page (:class:`StatusPage`) or publishes its state
(:func:`publish`). What is shown is read from the clients at that moment: servers, pools, who holds connections, who
waits and for how long, what has happened of late. There are no secrets and no documents in it, and no text of queries
unless the page is told to show it.

Whoever can open the page sees the names of hosts, databases and collections. Mount it where your other pages for
operators are, behind the same authentication.
"""

from __future__ import annotations

from gmongo.status.page import StatusPage
from gmongo.status.state import process_state
from gmongo.status.workers import publish, worker_states

__all__ = ["StatusPage", "process_state", "publish", "worker_states"]

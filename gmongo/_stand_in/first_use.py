"""A warning for applications that may use a client in native threads without knowing it."""

from __future__ import annotations

from typing import Any

from gevent import monkey

from gmongo.options.notices import notice
from gmongo.sdam.server import Server
from gmongo.sdam.topology import Topology


def warn_if_threading_is_unpatched() -> None:
    """At the first operation of this process, see whether ``threading`` is patched. Making a client is not yet an
    operation: gunicorn's master may make one at import, and its workers patch before they use it.

    It is looked at once, and costs nothing afterwards: what is patched stays so, and one warning is enough.
    """
    select_server = Topology.select_server

    def first_time(topology: Topology, *arguments: Any, **options: Any) -> Server:
        setattr(Topology, "select_server", select_server)  # noqa: B010 - a method is assigned
        if not monkey.is_module_patched("threading"):
            notice(
                "gmongo stands in for PyMongo, but threading is not patched. A client belongs to one native thread: "
                "its use by a library in another one raises InvalidOperation. Call gevent.monkey.patch_all() first, or "
                "run the program with 'python -m gmongo'"
            )
        return select_server(topology, *arguments, **options)

    setattr(Topology, "select_server", first_time)  # noqa: B010

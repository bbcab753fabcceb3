"""Substitutes for private attributes of PyMongo that the common code of its tests reads.

For example, the runner of the unified test format reads the pinned server of a transaction and the
number of connections.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

from gmongo import MongoClient, _clock, _random, monitoring
from gmongo.client_options import ClientOptions
from gmongo.client_session import ClientSession
from gmongo.cmap.connection import Connection
from gmongo.cmap.metadata import client_metadata
from gmongo.cmap.pool import Pool
from gmongo.command_cursor import CommandCursor
from gmongo.engines.server_cursor import ServerCursor
from gmongo.execution.server_session import ServerSession, ServerSessionPool
from gmongo.pool_options import PoolOptions
from gmongo.read_preferences import Nearest
from gmongo.sdam.selection import WRITABLE, find_suitable_servers
from gmongo.sdam.server import Server
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.topology import Topology
from tests.pymongo_suite.sources import PREFIX

# Base class of events in PyMongo -> prefixes of the names of its subclasses. Tests use the base
# classes in `isinstance`.
_EVENT_PREFIXES = {
    "_CommandEvent": ("Command",),
    "_ConnectionEvent": ("Connection",),
    "_PoolEvent": ("Pool",),
    "_ServerEvent": ("ServerOpening", "ServerClosed", "ServerDescription"),
    "_ServerHeartbeatEvent": ("ServerHeartbeat",),
    "TopologyEvent": ("Topology",),
}
# Name of a selector function in PyMongo -> server selector of gmongo.
_SELECTORS = {
    "writable_server_selector": WRITABLE,
    "readable_server_selector": Nearest(),
    "any_server_selector": Nearest(),
}
_select_server = Topology.select_server
_initialize_session_pool = ServerSessionPool.__init__
_pool_options: Any = vars(ClientOptions)["pool_options"]


class _PoolOptions(PoolOptions):
    """Pool options that contain the credential, as PyMongo's pool options do."""

    _credentials: Any


def _selector(function: Any) -> Any:
    return _SELECTORS.get(getattr(function, "__name__", ""), function)


def _select(
    topology: Topology, selector: Any, *arguments: Any, server_selection_timeout: float | None = None, **options: Any
) -> Server:
    deadline = None if server_selection_timeout is None else _clock.monotonic() + server_selection_timeout
    options.setdefault("deadline", deadline)
    return _select_server(topology, _selector(selector), *arguments, **options)


def _select_all(topology: Topology, selector: Any, operation: str, **limit: Any) -> list[Server]:
    _select(topology, selector, operation, **limit)
    servers = find_suitable_servers(topology.description, _selector(selector), frozenset())
    return [topology.server_at(each.address, None, wait=True) for each in servers]


def _opened_topology(client: MongoClient[Any]) -> Topology:
    client._topology.open()
    return client._topology


def _store_session_pool_in_topology(pool: ServerSessionPool, topology: Topology) -> None:
    _initialize_session_pool(pool, topology)
    topology._session_pool = pool  # type: ignore[attr-defined]


def _idle_sessions(pool: ServerSessionPool) -> Iterator[ServerSession]:
    return iter(list(pool._idle))


def _pymongo_transaction(session: ClientSession) -> SimpleNamespace:
    transaction = session._state.transaction
    states: Any = importlib.import_module(f"{PREFIX}pymongo.client_session_shared")._TxnState
    return SimpleNamespace(
        state=getattr(states, transaction.state.name),
        pinned_address=transaction.pinned_address,
        conn_mgr=transaction.pin,
    )


def _options_with_credential(options: ClientOptions) -> PoolOptions:
    pool_options = _PoolOptions(*_pool_options.fget(options))
    credential = options.credential
    if credential is not None:
        properties = {name.lower(): value for name, value in credential.properties.items()}
        if credential.mechanism == "MONGODB-AWS":
            properties.setdefault("aws_session_token", None)
        pool_options._credentials = SimpleNamespace(
            mechanism=credential.mechanism,
            source=credential.source,
            username=credential.username,
            password=credential.password,
            mechanism_properties=SimpleNamespace(**properties) if properties else None,
        )
    else:
        pool_options._credentials = None
    return pool_options


def _pool_settings(pool: Pool) -> SimpleNamespace:
    options = pool.options
    renamed_options = {"max_idle_time_seconds": options.max_idle_time, "non_default_options": options.specified}
    return SimpleNamespace(**vars(pool._connection_options), **vars(options), **renamed_options)


@contextmanager
def _checked_out(pool: Pool) -> Iterator[Connection]:
    connection = pool.check_out()
    try:
        yield connection
    finally:
        pool.check_in(connection)


def _kill_cursor(client: MongoClient[Any], cursor_id: int, address: Any) -> None:
    database, _, collection = address.namespace.partition(".")
    client[database].command("killCursors", collection, cursors=[cursor_id])


_SUBSTITUTES: tuple[tuple[Any, str, Any], ...] = (
    (MongoClient, "_connect", _opened_topology),
    (MongoClient, "_get_topology", _opened_topology),
    (MongoClient, "_topology_settings", property(lambda client: client._topology.settings)),
    (MongoClient, "_close_cursor_now", _kill_cursor),
    (_random, "random", lambda: random.random()),  # for tests that replace `random.random`
    # The default is PyMongo's value, which tests of overloaded servers expect.
    (ClientOptions, "max_adaptive_retries", property(lambda given: given.merged.get("maxadaptiveretries", 2))),
    (ClientOptions, "pool_options", property(_options_with_credential)),
    (ClientSession, "_materialize", lambda session: None),
    (ClientSession, "_pinned_address", property(lambda session: session._state.transaction.pinned_address)),
    (ClientSession, "_server_session", property(lambda session: session._state.server_session)),
    (ClientSession, "_transaction", property(_pymongo_transaction)),
    # Tests use the lock of a pool. gmongo has no lock, because no greenlet switch occurs in a
    # critical section of the pool.
    (Pool, "lock", property(lambda pool: nullcontext())),
    (Pool, "checkout", _checked_out),
    (Pool, "opts", property(_pool_settings)),
    (Pool, "conns", property(lambda pool: pool.machine.available)),
    (Pool, "active_sockets", property(lambda pool: len(pool.machine.in_use))),
    (Server, "_pool", property(lambda server: server.pool)),
    (CommandCursor, "_ns", property(lambda cursor: cursor._cursor._ns)),
    (ServerCursor, "address", property(lambda cursor: cursor.resources.address)),
    (ServerCursor, "cursor_id", property(lambda cursor: cursor.resources.cursor_id)),
    (ServerCursor, "_ns", property(lambda cursor: cursor.resources._namespace)),
    (ServerCursor, "_has_next", lambda cursor: cursor.has_buffered_documents),
    (ServerSession, "last_use", property(lambda session: session.last_used)),
    (ServerSession, "session_id", property(lambda session: session.lsid)),
    (ServerSessionPool, "__init__", _store_session_pool_in_topology),
    (ServerSessionPool, "__iter__", _idle_sessions),
    (Topology, "_description", property(lambda topology: topology.description)),
    (Topology, "_select_server", _select),
    (Topology, "_topology_id", property(lambda topology: topology.settings.topology_id)),
    (Topology, "max_cluster_time", lambda topology: topology.cluster_time),
    (Topology, "select_server", _select),
    (Topology, "select_servers", _select_all),
    (TopologySettings, "_topology_id", property(lambda settings: settings.topology_id)),
)


def install_substitutes() -> None:
    """Add the substitutes to the classes and modules of gmongo."""
    for owner, name, value in _SUBSTITUTES:
        setattr(owner, name, value)
    for name, prefixes in _EVENT_PREFIXES.items():
        event_classes = (
            value for key, value in vars(monitoring).items() if key.startswith(prefixes) and key.endswith("Event")
        )
        monitoring.__dict__[name] = tuple(each for each in event_classes if isinstance(each, type))
    metadata: dict[str, Any] = importlib.import_module(f"{PREFIX}pymongo.pool_options")._METADATA
    metadata.clear()  # handshake tests expect that a client sends the content of this dictionary
    metadata.update(client_metadata(None))

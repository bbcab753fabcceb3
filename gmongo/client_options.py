"""From a URI and keyword arguments to what each floor of the driver is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bson.codec_options import CodecOptions

from gmongo import options as client_options
from gmongo.cmap.metadata import client_metadata
from gmongo.cmap.options import ConnectionOptions, PoolOptions
from gmongo.driver_info import DriverInfo
from gmongo.errors import ConfigurationError
from gmongo.execution.executor import ExecutionOptions
from gmongo.monitoring import EventListeners
from gmongo.options import Options
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference
from gmongo.sdam.settings import TopologySettings
from gmongo.server_api import ServerApi
from gmongo.uri_parser import parse_uri, split_hosts
from gmongo.wire.address import Address
from gmongo.write_concern import WriteConcern

_DEFAULT_CONNECT_TIMEOUT = 20.0
_DEFAULT_SELECTION_TIMEOUT = 30.0
_DEFAULT_HEARTBEAT = 10.0
_DEFAULT_LOCAL_THRESHOLD_MS = 15
_DEFAULT_MAX_POOL_SIZE = 100

# The pool's options as events and logs show them, times in milliseconds, in the order of the log message (CMAP-214).
_SHOWN_POOL_OPTIONS = ("maxIdleTimeMS", "minPoolSize", "maxPoolSize", "maxConnecting", "waitQueueTimeoutMS")


class ClientOptions:
    """The options of one client, checked and sorted by who needs them.

    :param host: a host, a URI, or a list of hosts and URIs.
    :param port: of hosts that have none.
    :param keywords: options that override those of a URI.
    :raises ConfigurationError: an option is unknown, out of range, or contradicts another.
    """

    def __init__(self, host: str | Sequence[str] | None, port: int | None, keywords: Mapping[str, Any]) -> None:
        if port is not None and (isinstance(port, bool) or not isinstance(port, int)):
            raise TypeError(f"port must be an integer, not {port!r}")
        checked = client_options.validate_keyword_options(keywords)
        self.username: str | None = checked.get("username")
        self.seeds, self.default_database, merged, srv_hostname = self._gather(host, port or 27017, checked)
        merged.update(checked)
        client_options.check_combination(merged, len(self.seeds), srv_hostname is not None)
        self.merged: Options = merged
        self._srv = client_options.srv_name(srv_hostname, merged) if srv_hostname else None
        self.codec_options: CodecOptions[Any] = client_options.codec_options(merged)
        self.read_preference: _ReadPreference = client_options.read_preference(merged)
        self.write_concern: WriteConcern = client_options.write_concern(merged)
        self.read_concern: ReadConcern = client_options.read_concern(merged)
        self.server_api: ServerApi | None = merged.get("server_api")
        self.listeners = EventListeners(merged.get("event_listeners") or ())

    def _gather(
        self, host: str | Sequence[str] | None, port: int, keywords: Mapping[str, Any]
    ) -> tuple[tuple[Address, ...], str | None, Options, str | None]:
        """Seeds, default database and options of all hosts and URIs, and the host of a ``mongodb+srv`` URI."""
        entities = [host or "localhost"] if host is None or isinstance(host, str) else list(host)
        if not entities:
            raise ConfigurationError("host must name at least one host, was an empty list")
        seeds: dict[Address, None] = {}
        database, merged, srv_hostname = None, Options(), None
        for entity in entities:
            if not isinstance(entity, str):
                raise TypeError(f"host must be a string or a list of strings, not {entity!r}")
            if "://" not in entity:
                seeds.update(dict.fromkeys(split_hosts(entity, port)))
                continue
            parsed = parse_uri(
                entity,
                port,
                warn=True,
                connect_timeout=keywords.get("connecttimeoutms"),
                srv_service_name=keywords.get("srvservicename"),
                srv_max_hosts=keywords.get("srvmaxhosts"),
                srv_allowed_hosts_suffix=keywords.get("srvallowedhostssuffix"),
                srv_host_validator=keywords.get("srv_host_validator"),
            )
            seeds.update(dict.fromkeys(parsed["nodelist"]))
            self.username = self.username or parsed["username"]
            database = parsed["database"] or database
            merged.update(parsed["options"])
            srv_hostname = parsed["fqdn"] or srv_hostname
        return tuple(seeds), database, merged, srv_hostname

    def refuse_what_is_missing(self) -> None:
        """Refuse what this version cannot do, where going on without it would be unsafe.

        :raises ConfigurationError: such a thing was asked for.
        """
        get = self.merged.get
        missing = {
            "authentication": self.username or get("authmechanism"),
            "TLS": client_options.tls_enabled(self.merged),
            "a SOCKS5 proxy (proxyHost)": get("proxyhost"),
            "automatic encryption (auto_encryption_opts)": get("auto_encryption_opts"),
            "load-balanced mode (loadBalanced)": get("loadbalanced"),
            "a time-out of whole operations (timeoutMS)": get("timeoutms") is not None,
        }
        for what, wanted in missing.items():
            if wanted:
                raise ConfigurationError(f"{what} was asked for, but this version of gmongo does not have it yet")

    @property
    def connect_at_once(self) -> bool:
        """Whether the client starts its monitors when it is made, rather than when it is first used."""
        return bool(self.merged.get("connect", True))

    def execution(self) -> ExecutionOptions:
        """What the executor is told."""
        return ExecutionOptions(
            retry_reads=self.merged.get("retryreads", True), retry_writes=self.merged.get("retrywrites", True)
        )

    def topology(self) -> TopologySettings:
        """What the topology is told."""
        get = self.merged.get
        return TopologySettings(
            seeds=self.seeds,
            listeners=self.listeners,
            replica_set_name=get("replicaset"),
            direct_connection=self._is_direct(),
            load_balanced=bool(get("loadbalanced")),
            heartbeat_frequency=get("heartbeatfrequencyms", _DEFAULT_HEARTBEAT),
            local_threshold=get("localthresholdms", _DEFAULT_LOCAL_THRESHOLD_MS) / 1000,
            server_selection_timeout=get("serverselectiontimeoutms", _DEFAULT_SELECTION_TIMEOUT),
            server_selector=get("server_selector"),
            monitoring_mode=get("servermonitoringmode", "auto"),
            srv=self._srv,
            srv_max_hosts=get("srvmaxhosts") or 0,
            pool=self._pool(),
            connection=self._connection(),
        )

    def _is_direct(self) -> bool:
        return bool(self.merged.get("directconnection"))

    def _pool(self) -> PoolOptions:
        get = self.merged.get
        specified = {
            name: round((get(name) or 0) * 1000) if name.endswith("MS") else get(name)
            for name in _SHOWN_POOL_OPTIONS
            if name in self.merged
        }
        return PoolOptions(
            max_pool_size=get("maxpoolsize", _DEFAULT_MAX_POOL_SIZE),
            min_pool_size=get("minpoolsize", 0),
            max_idle_time=get("maxidletimems"),
            max_connecting=get("maxconnecting", 2),
            wait_queue_timeout=get("waitqueuetimeoutms"),
            specified=specified,
        )

    def _connection(self) -> ConnectionOptions:
        get = self.merged.get
        driver: DriverInfo | None = get("driver")
        return ConnectionOptions(
            connect_timeout=get("connecttimeoutms", _DEFAULT_CONNECT_TIMEOUT),
            socket_timeout=get("sockettimeoutms"),
            metadata=client_metadata(get("appname"), (driver,) if driver else ()),
            server_api=_server_api_fields(self.server_api),
            load_balanced=bool(get("loadbalanced")),
        )


def _server_api_fields(api: ServerApi | None) -> dict[str, Any]:
    """What a Stable API adds to every command."""
    if api is None:
        return {}
    fields: dict[str, Any] = {"apiVersion": api.version}
    if api.strict is not None:
        fields["apiStrict"] = api.strict
    if api.deprecation_errors is not None:
        fields["apiDeprecationErrors"] = api.deprecation_errors
    return fields

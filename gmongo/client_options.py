"""Client options from a URI and keyword arguments, and the settings of each layer of the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from gmongo import pool_options
from gmongo._documents import Document, DocumentDict, Value, without_none
from gmongo._inherited_options import InheritedOptions
from gmongo._telemetry.settings import TelemetrySettings, telemetry_settings
from gmongo._tls import tls_of
from gmongo.auth.credential import Credential, credential_of
from gmongo.cmap.metadata import client_metadata
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.driver_info import DriverInfo
from gmongo.errors import ConfigurationError, InsecureConnectionWarning, InvalidOption, InvalidURI
from gmongo.execution.retry import ExecutionSettings
from gmongo.monitoring import EventListeners
from gmongo.options import client_values
from gmongo.options.hosts import DEFAULT_PORT, is_on_this_machine, parse_hosts
from gmongo.options.mapping import Options
from gmongo.options.notices import notice
from gmongo.options.rules import check_combination, overriding_options, validate_keyword_options
from gmongo.options.srv import srv_name
from gmongo.options.uri import read_uri
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.settings import TopologySettings
from gmongo.server_api import ServerApi
from gmongo.wire.address import Address
from gmongo.wire.compression import missing_package
from gmongo.wire.socks5 import Proxy

if TYPE_CHECKING:
    from gmongo.auth.authenticator import Authenticator
    from gmongo.encryption_options import AutoEncryptionOpts

__all__ = ["ClientOptions"]

_DEFAULT_PROXY_PORT = 1080
_LARGEST_PORT = 65535
_SENT_SECRETS = {"PLAIN": "the password", "MONGODB-OIDC": "an access token"}

# Pool options that events and logs show, in the order of the log message (CMAP-214). Times are in milliseconds.
_SHOWN_POOL_OPTIONS = ("maxIdleTimeMS", "minPoolSize", "maxPoolSize", "maxConnecting", "waitQueueTimeoutMS")


def _option(key: str, default: object, doc: str) -> Value:
    """Return a property whose value is the option `key`, or `default` if the option is not set."""
    return property(lambda options: options.merged.get(key, default), doc=doc)


class ClientOptions(InheritedOptions):
    """Checked options of one client.

    :param host: a host, a URI, or a list of hosts. The list may contain one URI.
    :param port: the port of each host that is given without a port; None means 27017.
    :param keywords: options that override the options of the URI. No keyword may weaken the security of the URI.
    :param silent: True disables logs, events, traces and metrics of the client; False by default.
    :raises ConfigurationError: an option is invalid or contradicts another option; or `host` contains several URIs.
    """

    def __init__(
        self, host: str | Sequence[str], port: int | None, keywords: Document, *, silent: bool = False
    ) -> None:
        if port is not None and (isinstance(port, bool) or not isinstance(port, int)):
            raise TypeError(f"port must be an integer, not {type(port).__name__}")
        if port is not None and not 1 <= port <= _LARGEST_PORT:
            raise InvalidOption(f"port must be an integer from 1 to {_LARGEST_PORT}, not {port}")
        checked = validate_keyword_options(keywords)
        self._username: str | None = checked.get("username")
        self._password: str | None = checked.pop("password", None)
        self.seeds, self.default_database, merged, srv_hostname = self._merge(host, port or DEFAULT_PORT, checked)
        self.srv_hostname: str | None = srv_hostname
        self.merged: Options = merged
        driver: DriverInfo | None = merged.get("driver")
        self.libraries: tuple[DriverInfo, ...] = (driver,) if driver else ()  # the libraries that wrap gmongo
        self.credential = self._checked_credential(self.seeds, merged)
        self._srv = srv_name(srv_hostname, merged) if srv_hostname else None
        super().__init__(
            client_values.codec_options(merged),
            client_values.read_preference(merged),
            client_values.write_concern(merged),
            client_values.read_concern(merged),
        )
        self.server_api: ServerApi | None = merged.get("server_api")
        self.silent = silent
        self.listeners = EventListeners(merged.get("event_listeners") or (), registered=not silent)
        # The identity contains no values from DNS: its hash must not change when the first operation queries DNS.
        self.identity = tuple(sorted(self.seeds, key=str)), self.replica_set_name, srv_hostname, self.srv_service_name
        if self.is_unresolved and self.connect:
            self._resolve_hosts(ref=True)

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle the options of a client, which may contain a password; pass the URI instead")

    def _merge(
        self, host: str | Sequence[str], port: int, keywords: Document
    ) -> tuple[tuple[Address, ...], str | None, Options, str | None]:
        """Return the seeds, the default database, the merged options, and the host of a ``mongodb+srv`` URI."""
        entities = [host] if isinstance(host, (str, bytes)) else list(host)
        if not entities:
            raise ConfigurationError("host must name at least one host, was an empty list")
        seeds: dict[Address, None] = {}
        parsed_uri: DocumentDict | None = None
        for entity in entities:
            if not _is_uri(entity):
                seeds.update(dict.fromkeys(parse_hosts(entity, port)))
                continue
            if parsed_uri is not None:
                raise ConfigurationError("host must not contain several URIs: one URI may name several hosts")
            srv_options = {name: value for name, value in keywords.items() if name.startswith("srv")}
            parsed_uri = read_uri(entity, port, warn=True, srv_options=srv_options, resolve=False)
            seeds.update(dict.fromkeys(parsed_uri["nodelist"]))
        if parsed_uri is None:
            return tuple(seeds), None, Options(keywords), None
        self._username = parsed_uri["username"] if self._username is None else self._username
        self._password = parsed_uri["password"] if self._password is None else self._password
        merged = Options({**parsed_uri["options"], **overriding_options(keywords, parsed_uri["own"])})
        return tuple(seeds), parsed_uri["database"], merged, parsed_uri["fqdn"]

    def _checked_credential(self, seeds: Sequence[Address], merged: Options) -> Credential | None:
        """Check that options and seeds do not contradict each other, and return the credential."""
        check_combination(merged, len(seeds), self.srv_hostname is not None)
        credential = credential_of(merged, self._username, self._password, self.default_database)
        if credential is not None and not client_values.tls_enabled(merged):
            _check_mechanism_without_tls(credential, [seed for seed in seeds if seed != self._srv_seed])
        return credential

    @property
    def _srv_seed(self) -> Address:
        """The seed that stands for the hosts of a ``mongodb+srv`` URI until DNS has resolved these hosts."""
        return self.srv_hostname or "", None

    @property
    def is_unresolved(self) -> bool:
        """True until DNS has resolved the hosts of a ``mongodb+srv`` URI."""
        return self._srv_seed in self.seeds

    def _resolve_hosts(self, ref: bool) -> None:
        """Query DNS for the hosts and the TXT record of a ``mongodb+srv`` URI.

        :param ref: True if the queries keep the event loop alive.
        :raises ConfigurationError: a query failed, or DNS returned a host or an option that is not allowed.
        """
        assert self._srv is not None
        hosts = self._srv.seeds(ref)
        defaults = self._srv.options(validate=True, warn=True, normalize=True, ref=ref)
        seeds: dict[Address, None] = {}
        for seed in self.seeds:
            seeds.update(dict.fromkeys(hosts if seed == self._srv_seed else [seed]))
        merged = Options({**defaults, **self.merged})
        credential = self._checked_credential(tuple(seeds), merged)
        self.seeds, self.merged, self.credential = tuple(seeds), merged, credential

    def _resolve_settings(self, settings: TopologySettings) -> TopologySettings:
        """Query DNS while an operation waits, and return the settings with the seeds and options from DNS."""
        self._resolve_hosts(ref=False)
        connection = replace(
            settings.connection, load_balanced=bool(self.load_balanced), authenticator=self._create_authenticator()
        )
        return replace(
            settings,
            seeds=self.seeds,
            replica_set_name=self.replica_set_name,
            load_balanced=connection.load_balanced,
            resolve=None,
            connection=connection,
        )

    connect: bool = _option(
        "connect",
        True,
        "True (the default) starts the monitors in the constructor. False starts them with the first operation.",
    )
    srv_service_name: str = _option(
        "srvservicename", "mongodb", "The service name of the SRV records, ``mongodb`` by default."
    )
    direct_connection: bool | None = _option(
        "directconnection", None, "True connects only to one host. None (the default) means False."
    )
    load_balanced: bool | None = _option(
        "loadbalanced", None, "True if the host is a load balancer. None (the default) means False."
    )
    replica_set_name: str | None = _option(
        "replicaset", None, "The name that the replica set must have. None allows any name."
    )
    local_threshold_ms: float = _option(
        "localthresholdms", 15, "The width of the latency window of server selection, in milliseconds; 15 by default."
    )
    server_selection_timeout: float = _option(
        "serverselectiontimeoutms",
        TopologySettings.server_selection_timeout,
        "The time limit of server selection, in seconds. The default is 30.",
    )
    heartbeat_frequency: float = _option(
        "heartbeatfrequencyms",
        TopologySettings.heartbeat_frequency,
        "The interval between two checks of a server, in seconds. The default is 10.",
    )
    server_monitoring_mode: str = _option(
        "servermonitoringmode", TopologySettings.monitoring_mode, "``auto`` (the default), ``stream`` or ``poll``."
    )
    server_selector: Callable[[list[ServerDescription]], Iterable[ServerDescription]] | None = _option(
        "server_selector", None, "The function that filters the suitable servers, or None."
    )
    timeout: float | None = _option(
        "timeoutms", None, "The time limit of each operation, in seconds. None means no limit."
    )
    retry_reads: bool = _option(
        "retryreads", ExecutionSettings.retry_reads, "True (the default) if the client retries reads."
    )
    retry_writes: bool = _option(
        "retrywrites", ExecutionSettings.retry_writes, "True (the default) if the client retries writes."
    )
    max_adaptive_retries: int = _option(
        "maxadaptiveretries",
        ExecutionSettings.max_adaptive_retries,
        "The maximum number of overload retries of an operation. The default is 5.",
    )
    enable_overload_retargeting: bool = _option(
        "enableoverloadretargeting",
        ExecutionSettings.overload_retargeting,
        "True if overload retries avoid the overloaded server; False by default.",
    )
    auto_encryption_opts: AutoEncryptionOpts | None = _option(
        "auto_encryption_opts", None, "The options of automatic encryption, or None."
    )

    @property
    def event_listeners(self) -> list[object]:
        """The listeners of this client, and the global listeners."""
        return self.listeners.all

    @property
    def pool_options(self) -> pool_options.PoolOptions:
        """The options of each connection pool."""
        get = self.merged.get
        settings = self._create_pool_settings()
        return pool_options.PoolOptions(
            max_pool_size=get("maxpoolsize", settings.max_pool_size),
            min_pool_size=settings.min_pool_size,
            max_idle_time_seconds=settings.max_idle_time,
            max_connecting=settings.max_connecting,
            wait_queue_timeout=settings.wait_queue_timeout,
            connect_timeout=get("connecttimeoutms", ConnectionSettings.connect_timeout),
            socket_timeout=get("sockettimeoutms"),
            tls_allow_invalid_hostnames=bool(get("tlsallowinvalidhostnames") or get("tlsinsecure")),
            appname=get("appname"),
            driver=get("driver"),
            server_api=self.server_api,
            load_balanced=self.load_balanced,
            metadata=self.metadata(),
            non_default_options=settings.specified,
        )

    def metadata(self) -> DocumentDict:
        """Return the client metadata that the handshake of a connection sends."""
        return client_metadata(self.merged.get("appname"), self.libraries)

    def execution(self) -> ExecutionSettings:
        """Return the settings of the executor."""
        return ExecutionSettings(
            retry_reads=self.retry_reads,
            retry_writes=self.retry_writes,
            timeout=self.timeout,
            max_adaptive_retries=self.max_adaptive_retries,
            base_backoff=self.merged.get("basebackoffms", ExecutionSettings.base_backoff),
            overload_retargeting=self.enable_overload_retargeting,
        )

    def telemetry(self) -> TelemetrySettings:
        """Return the telemetry settings.

        :raises ConfigurationError: an option requires a package that is not installed.
        """
        get = self.merged.get
        if self.silent:  # ignore the environment variables of telemetry
            return TelemetrySettings()
        return telemetry_settings(get("tracing"), get("metrics"), get("slow_operation_ms"))

    def topology(self, connection_made: Callable[[Address, float], None] | None = None) -> TopologySettings:
        """Return the settings of the topology.

        :param connection_made: a callback that receives the address and the set-up time (seconds) of a connection.
        """
        return TopologySettings(
            seeds=self.seeds,
            listeners=self.listeners,
            replica_set_name=self.replica_set_name,
            direct_connection=bool(self.direct_connection),
            load_balanced=bool(self.load_balanced),
            heartbeat_frequency=self.heartbeat_frequency,
            local_threshold=self.local_threshold_ms / 1000,
            server_selection_timeout=self.server_selection_timeout,
            server_selector=self.server_selector,
            monitoring_mode=self.server_monitoring_mode,
            srv=self._srv,
            resolve=self._resolve_settings if self.is_unresolved else None,
            srv_max_hosts=self.merged.get("srvmaxhosts") or 0,
            connection_made=connection_made,
            silent=self.silent,
            pool=self._create_pool_settings(),
            connection=self._create_connection_settings(),
        )

    def _create_pool_settings(self) -> PoolSettings:
        get = self.merged.get
        shown = {name: get(name) or 0 for name in _SHOWN_POOL_OPTIONS if name in self.merged}
        return PoolSettings(
            max_pool_size=get("maxpoolsize", PoolSettings.max_pool_size) or 0,
            min_pool_size=get("minpoolsize", PoolSettings.min_pool_size),
            max_idle_time=get("maxidletimems"),
            max_connecting=get("maxconnecting", PoolSettings.max_connecting),
            wait_queue_timeout=get("waitqueuetimeoutms"),
            drains=get("drainlatereplies", PoolSettings.drains),
            drain_time=get("drainlaterepliesms", PoolSettings.drain_time),
            drain_bytes=get("drainlaterepliesbytes", PoolSettings.drain_bytes),
            specified={name: round(value * 1000) if name.endswith("MS") else value for name, value in shown.items()},
        )

    def _create_connection_settings(self) -> ConnectionSettings:
        get = self.merged.get
        return ConnectionSettings(
            connect_timeout=get("connecttimeoutms", ConnectionSettings.connect_timeout),
            socket_timeout=get("sockettimeoutms"),
            metadata=self.metadata(),
            server_api=_build_server_api_fields(self.server_api),
            load_balanced=bool(self.load_balanced),
            compressors=_select_compressors(get("compressors") or ()),
            zlib_level=get("zlibcompressionlevel", ConnectionSettings.zlib_level),
            tls=tls_of(self.merged, get("connecttimeoutms", ConnectionSettings.connect_timeout)),
            proxy=self._create_proxy(),
            authenticator=self._create_authenticator(),
        )

    def _create_authenticator(self) -> Authenticator | None:
        if self.credential is None:
            return None
        # Only clients with a credential import the mechanisms, which import large modules like http.
        from gmongo.auth.authenticator import Authenticator

        return Authenticator(self.credential)

    def _create_proxy(self) -> Proxy | None:
        get = self.merged.get
        host: str | None = get("proxyhost")
        if not host:
            return None
        address = host, get("proxyport", _DEFAULT_PROXY_PORT)
        return Proxy(address, get("proxyusername") or None, get("proxypassword") or None)


def _is_uri(entity: object) -> bool:
    """Return True if `entity` is a URI, and False if `entity` is a host."""
    if not isinstance(entity, str):
        raise TypeError(f"host must be a string or a list of strings, not {type(entity).__name__}")
    if not entity:
        raise InvalidURI("host must not be empty; if it comes from a variable, the variable is empty")
    if "/" in entity and "://" not in entity and not entity.endswith(".sock"):
        raise InvalidURI(
            "a URI must begin with 'mongodb://' or 'mongodb+srv://'; "
            "as a host, only the path of a Unix domain socket may contain a '/'"
        )
    return "://" in entity


def _check_mechanism_without_tls(credential: Credential, seeds: Sequence[Address]) -> None:
    """Warn if the mechanism sends a secret to another machine without TLS.

    :raises ConfigurationError: the mechanism works only with TLS.
    """
    mechanism = credential.mechanism
    if mechanism == "MONGODB-X509":
        raise ConfigurationError("authMechanism MONGODB-X509 needs tls=true: the TLS certificate is the credential")
    if mechanism in _SENT_SECRETS and not all(is_on_this_machine(seed) for seed in seeds):
        secret = _SENT_SECRETS[mechanism]
        message = f"authMechanism {mechanism} without tls=true sends {secret} over the network in plain text"
        notice(message, InsecureConnectionWarning)


def _select_compressors(compressors: Sequence[str]) -> tuple[str, ...]:
    """Return the compressors whose library is installed. Warn about the other compressors."""
    missing_packages = {name: missing_package(name) for name in compressors}
    for name, package in missing_packages.items():
        if package is not None:
            notice(f"compressors: {name!r} is not used, because its library is not installed (pip install {package})")
    return tuple(name for name in compressors if missing_packages[name] is None)


def _build_server_api_fields(api: ServerApi | None) -> DocumentDict:
    """Return the fields that the Stable API adds to every command."""
    if api is None:
        return {}
    return without_none({"apiVersion": api.version}, apiStrict=api.strict, apiDeprecationErrors=api.deprecation_errors)

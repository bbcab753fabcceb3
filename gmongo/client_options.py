"""From a URI and keyword arguments to what each floor of the driver is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from bson.codec_options import CodecOptions

from gmongo import options as client_options
from gmongo.auth.credential import Credential, credential_of
from gmongo.cmap.metadata import client_metadata
from gmongo.cmap.options import ConnectionOptions, PoolOptions
from gmongo.driver_info import DriverInfo
from gmongo.errors import ConfigurationError, InsecureConnectionWarning
from gmongo.execution.executor import ExecutionOptions
from gmongo.execution.overload import BASE_BACKOFF, MAX_RETRIES
from gmongo.monitoring import EventListeners
from gmongo.options import Options
from gmongo.options.errors import InvalidOption
from gmongo.options.hosts import DEFAULT_PORT, is_on_this_machine
from gmongo.options.notices import notice
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference
from gmongo.sdam.settings import TopologySettings
from gmongo.server_api import ServerApi
from gmongo.uri_parser import parse_uri, split_hosts
from gmongo.wire.address import Address
from gmongo.wire.compression import what_is_missing
from gmongo.wire.socks5 import Proxy
from gmongo.wire.tls import Tls
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from gmongo.auth.authenticator import Authenticator

_DEFAULT_CONNECT_TIMEOUT = 20.0
_DEFAULT_SELECTION_TIMEOUT = 30.0
_DEFAULT_HEARTBEAT = 10.0
_DEFAULT_LOCAL_THRESHOLD_MS = 15
_DEFAULT_MAX_POOL_SIZE = 100
_DEFAULT_PROXY_PORT = 1080
_LARGEST_PORT = 65535
_SENDS_SECRETS = {"PLAIN": "the password", "MONGODB-OIDC": "an access token"}

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
        if port is not None and not 1 <= port <= _LARGEST_PORT:
            raise InvalidOption(f"port must be an integer from 1 to {_LARGEST_PORT}, not {port}")
        checked = client_options.validate_keyword_options(keywords)
        self._username: str | None = checked.get("username")
        self._password: str | None = checked.pop("password", None)
        self.seeds, self.default_database, merged, srv_hostname = self._gather(host, port or DEFAULT_PORT, checked)
        merged.update(checked)
        client_options.check_combination(merged, len(self.seeds), srv_hostname is not None)
        self.merged: Options = merged
        self.credential = credential_of(merged, self._username, self._password, self.default_database)
        if self.credential is not None and not client_options.tls_enabled(merged):
            _check_without_tls(self.credential, self.seeds)
        self._srv = client_options.srv_name(srv_hostname, merged) if srv_hostname else None
        self.codec_options: CodecOptions[Any] = client_options.codec_options(merged)
        self.read_preference: _ReadPreference = client_options.read_preference(merged)
        self.write_concern: WriteConcern = client_options.write_concern(merged)
        self.read_concern: ReadConcern = client_options.read_concern(merged)
        self.server_api: ServerApi | None = merged.get("server_api")
        self.listeners = EventListeners(merged.get("event_listeners") or ())

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle the options of a client, which may hold a password; pass the URI on instead")

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
            self._username = parsed["username"] if self._username is None else self._username
            self._password = parsed["password"] if self._password is None else self._password
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
            "automatic encryption (auto_encryption_opts)": get("auto_encryption_opts"),
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
        get = self.merged.get
        return ExecutionOptions(
            retry_reads=get("retryreads", True),
            retry_writes=get("retrywrites", True),
            timeout=get("timeoutms"),
            max_adaptive_retries=get("maxadaptiveretries", MAX_RETRIES),
            base_backoff=get("basebackoffms", BASE_BACKOFF),
            overload_retargeting=get("enableoverloadretargeting", True),
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
            compressors=_usable(get("compressors") or ()),
            zlib_level=get("zlibcompressionlevel", -1),
            tls=self._tls(),
            proxy=self._proxy(),
            authenticator=None if self.credential is None else _authenticator(self.credential),
        )

    def _tls(self) -> Tls | None:
        context = client_options.tls_context(self.merged)
        return None if context is None else Tls(context)

    def _proxy(self) -> Proxy | None:
        get = self.merged.get
        host: str | None = get("proxyhost")
        if not host:
            return None
        address = host, get("proxyport", _DEFAULT_PROXY_PORT)
        return Proxy(address, get("proxyusername") or None, get("proxypassword") or None)


def _check_without_tls(credential: Credential, seeds: Sequence[Address]) -> None:
    """Refuse, or warn of, a mechanism that is not safe without TLS.

    :raises ConfigurationError: it cannot work without TLS.
    """
    mechanism = credential.mechanism
    if mechanism == "MONGODB-X509":
        raise ConfigurationError("authMechanism MONGODB-X509 needs tls=true: the certificate of TLS is the credential")
    if mechanism in _SENDS_SECRETS and not all(is_on_this_machine(seed) for seed in seeds):
        what = _SENDS_SECRETS[mechanism]
        message = f"authMechanism {mechanism} without tls=true sends {what} over the network for anybody to read"
        notice(message, InsecureConnectionWarning)


def _authenticator(credential: Credential) -> Authenticator:
    # Mechanisms bring HTTP and more with them, which a client without a credential need not load.
    from gmongo.auth.authenticator import Authenticator

    return Authenticator(credential)


def _usable(compressors: Sequence[str]) -> tuple[str, ...]:
    """Those compressors whose library is there; the others are warned about."""
    missing = {name: what_is_missing(name) for name in compressors}
    for name, package in missing.items():
        if package is not None:
            notice(f"compressors: {name!r} is left out, as its library is not installed (pip install {package})")
    return tuple(name for name in compressors if missing[name] is None)


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

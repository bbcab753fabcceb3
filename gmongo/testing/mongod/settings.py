"""The settings of a `mongod`, and the command line for these settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from gmongo._nearest import did_you_mean
from gmongo.testing.mongod.program import EmbeddedDatabaseError

HOST = "127.0.0.1"
# By default, a `mongod` uses half of the memory for its cache, and 5 % of the disk for its oplog.
# Servers of tests need less.
_CACHE_GIGABYTES = "0.25"
_OPLOG_MEGABYTES = "128"


@dataclass(frozen=True)
class Settings:
    """The settings of an embedded database or replica set, which `EmbeddedDatabase` describes."""

    port: int = 0  # port of the first server, or 0 for free ports
    fail_points: bool = True
    tls: bool = False
    users: Mapping[str, str] = field(default_factory=dict)
    require_api_version: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    compressors: str = "snappy,zstd,zlib"

    def __post_init__(self) -> None:
        if type(self.port) is not int or not 0 <= self.port < 2**16:
            raise ValueError(f"port must be a number from 0 to 65535, not {self.port!r:.20}")
        for name, password in self.users.items():
            if not (isinstance(name, str) and isinstance(password, str) and name and password):
                raise ValueError("users must map names to passwords, and neither may be empty")

    @classmethod
    def create(cls, class_name: str, arguments: Mapping[str, Any]) -> Settings:
        """Create the settings from keyword arguments of a class. Error messages name the class."""
        for name in arguments:
            if name not in cls.__dataclass_fields__:
                raise TypeError(f"{class_name} has no setting {name!r}{did_you_mean(name, cls.__dataclass_fields__)}")
        return cls(**arguments)

    @property
    def credentials(self) -> tuple[str, str] | None:
        """The name and the password of the first user. None if there are no users."""
        return next(iter(self.users.items()), None)

    @property
    def ca_file(self) -> str | None:
        """The path of the CA certificate that a client needs. None if the servers do not use TLS."""
        return _load_certificates().ca_file if self.tls else None

    def uri(self, *addresses: str, replica_set: str | None = None) -> str:
        """Return a connection string with the first user and the options that the servers require."""
        user = ":".join(quote(part, safe="") for part in self.credentials) + "@" if self.credentials else ""
        options = {"replicaSet": replica_set, "tls": "true" if self.tls else None, "tlsCAFile": self.ca_file}
        query = urlencode({name: value for name, value in options.items() if value is not None})
        return f"mongodb://{user}{','.join(addresses)}/{'?' if query else ''}{query}"

    def create_arguments(
        self, version: tuple[int, ...], data_folder: Path, scratch: Path, port: int, replica_set: str | None
    ) -> list[str]:
        """Return the command-line arguments of a server. Create a key file in `scratch` if needed."""
        arguments = ["--dbpath", str(data_folder), "--bind_ip", HOST, "--port", str(port), "--nounixsocket"]
        arguments += ["--wiredTigerCacheSizeGB", _CACHE_GIGABYTES, "--networkMessageCompressors", self.compressors]
        parameters: dict[str, Any] = {"diagnosticDataCollectionEnabled": False, "enableTestCommands": self.fail_points}
        if version >= (5,):  # by default, a member ends 15 seconds after SIGTERM
            parameters["shutdownTimeoutMillisForSignaledShutdown"] = 100
        for name, value in {**parameters, **self.parameters}.items():
            arguments += ["--setParameter", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
        if replica_set is not None:
            arguments += ["--replSet", replica_set, "--oplogSize", _OPLOG_MEGABYTES]
        if self.users:
            arguments += ["--auth", *(["--keyFile", _create_key_file(scratch)] if replica_set is not None else [])]
        if self.tls:
            authority = _load_certificates()
            certificate = authority.issue(HOST, "localhost")
            arguments += ["--tlsMode", "requireTLS", "--tlsAllowConnectionsWithoutCertificates"]
            arguments += ["--tlsCertificateKeyFile", certificate, "--tlsCAFile", authority.ca_file]
        return arguments


def _create_key_file(scratch: Path) -> str:
    # The key need not be secret: the members contain only data of tests, and listen only on the loopback interface.
    path = scratch / "key"
    if not path.exists():
        path.touch(0o600)
        path.write_text("gmongo" * 8)
    return str(path)


def _load_certificates() -> Any:
    try:
        from gmongo.testing.simulation.certificates import certificates

        return certificates()
    except RuntimeError as error:
        raise EmbeddedDatabaseError(f"tls=True: {error}") from error

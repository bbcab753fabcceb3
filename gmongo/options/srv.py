"""Hosts and options of ``mongodb+srv`` URIs: dnspython reads SRV and TXT records in a native thread."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from gevent import get_hub, monkey

from gmongo import _random
from gmongo._documents import Document, DocumentDict
from gmongo._native_threads import run_in_native_thread
from gmongo._safe_log import printable, safely
from gmongo.errors import ConfigurationError, InvalidURI
from gmongo.options.mapping import Options
from gmongo.options.query import split_options
from gmongo.options.table import find_option

_log = logging.getLogger("gmongo.topology")

DEFAULT_SERVICE_NAME = "mongodb"
_DEFAULT_TIMEOUT = 20.0
_ALLOWED_TXT_OPTIONS = frozenset(("authsource", "replicaset", "loadbalanced"))

# Option key -> field of SrvName.
_FIELD_OF_OPTION = {
    "srvservicename": "service_name",
    "srvmaxhosts": "max_hosts",
    "srvallowedhostssuffix": "allowed_suffix",
    "srv_host_validator": "host_validator",
    "connecttimeoutms": "timeout",
}

HostPort = tuple[str, int]


class Answer(NamedTuple):
    """Answer to a DNS query."""

    records: list[Any]  # (host, port) pairs of SRV records, or texts of TXT records
    ttl: int = 0  # the time to live, in seconds


def lookup(name: str, record_type: str, timeout: float, ref: bool) -> Answer:
    """Send a DNS query in a native thread. If the name or the records do not exist, the answer has no records.

    The query with its retries takes at most `timeout` seconds. If `ref` is True, the query keeps the
    event loop alive.
    """
    import dns.resolver

    def query_dns() -> Answer:
        records: list[Any]
        try:
            reply: Any = dns.resolver.resolve(name, record_type, lifetime=timeout)
            if record_type == "SRV":
                records = [(str(record.target), record.port) for record in reply]
            else:
                records = [b"".join(record.strings).decode("utf-8") for record in reply]
            return Answer(records, reply.rrset.ttl)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return Answer([])
        finally:
            # If sockets are monkey-patched, dnspython has created a gevent hub in this thread.
            if monkey.is_module_patched("socket"):
                get_hub().destroy(destroy_loop=True)

    outcome = run_in_native_thread(query_dns, ref)
    if isinstance(outcome, Answer):
        return outcome
    raise ConfigurationError(f"DNS gave no {record_type} records of {name}: {outcome}") from outcome


@dataclass(frozen=True)
class SrvName:
    """Host name of a ``mongodb+srv`` URI, and the options for the DNS queries."""

    hostname: str
    service_name: str = DEFAULT_SERVICE_NAME
    max_hosts: int = 0
    allowed_suffix: str | None = None  # None uses the domain of `hostname`
    host_validator: Callable[[str], object] | None = None  # None accepts hosts of the allowed domain
    timeout: float = _DEFAULT_TIMEOUT  # the time limit of each DNS query, in seconds

    def verified_hosts(self) -> Answer:
        """Return the allowed hosts in the SRV records, and log a warning for each host that is not allowed."""
        answer = self._look_up(ref=False)
        accepted_hosts = []
        for host, port in answer.records:
            if self._accepts(host):
                accepted_hosts.append((host, port))
            else:
                safely(_log.warning, "%s", printable(self._describe_refusal(host)))
        if not accepted_hosts:
            raise ConfigurationError(f"the SRV records of {self.hostname} name no host that is allowed")
        return Answer(accepted_hosts, answer.ttl)

    def _look_up(self, ref: bool) -> Answer:
        name = f"_{self.service_name}._tcp.{self.hostname}"
        answer = lookup(name, "SRV", self.timeout, ref)
        if not answer.records:
            raise ConfigurationError(f"there are no hosts for the URI: DNS has no SRV records of {name}")
        return Answer(list({(host.lower().rstrip("."), port): None for host, port in answer.records}), answer.ttl)

    def seeds(self, ref: bool = True) -> list[HostPort]:
        """Return all seeds, or `max_hosts` random seeds. A host that is not allowed raises ConfigurationError."""
        hosts: list[HostPort] = self._look_up(ref).records
        for host, _ in hosts:
            if not self._accepts(host):
                raise ConfigurationError(self._describe_refusal(host))
        return _random.sample(hosts, self.max_hosts) if 0 < self.max_hosts < len(hosts) else hosts

    def options(self, validate: bool, warn: bool, normalize: bool, ref: bool = True) -> Options:
        """Return the options in the TXT record of the host, parsed by :func:`~gmongo.options.query.split_options`."""
        records = lookup(self.hostname, "TXT", self.timeout, ref).records
        if not records:
            return Options()
        if len(records) > 1:
            raise ConfigurationError(f"{self.hostname} must have one TXT record at most, not {len(records)}")
        options = split_options(records[0], validate, warn, normalize)
        forbidden_options = {key: find_option(key) for key in options.keys() - _ALLOWED_TXT_OPTIONS}
        if forbidden_options:
            names = ", ".join(sorted(option.name if option else key for key, option in forbidden_options.items()))
            raise ConfigurationError(
                f"the TXT record of {self.hostname} may have only authSource, replicaSet and loadBalanced, not {names}"
            )
        return options

    def _accepts(self, host: str) -> bool:
        if self.host_validator is None:
            return host.endswith(f".{self._domain}")
        try:
            return bool(self.host_validator(host))
        except Exception as error:
            raise ConfigurationError(f"srv_host_validator failed for the host {host!r}: {error}") from error

    @property
    def _domain(self) -> str:
        """The domain that hosts in SRV records must have."""
        # The domain of a hostname with three or more labels omits the first label.
        parent_domain = self.hostname.partition(".")[2] if self.hostname.count(".") >= 2 else self.hostname
        return self.allowed_suffix or parent_domain

    def _describe_refusal(self, host: str) -> str:
        domain_or_validator = self._domain if self.host_validator is None else "srv_host_validator"
        return f"the SRV records of {self.hostname} name the host {host!r}, which {domain_or_validator} does not allow"


def srv_name(hostname: str, options: Document, timeout: float | None = None) -> SrvName:
    """Return the host name of a URI, with the client options for the DNS queries.

    Convert option values that are strings. The time limit of each DNS query is `timeout`, in seconds.
    None means connectTimeoutMS, or 20 seconds without this option.
    """
    fields: DocumentDict = {}
    for key, field in _FIELD_OF_OPTION.items():
        option = find_option(key)
        value = options.get(key)
        if option is not None and value is not None:
            fields[field] = option.check(value) if isinstance(value, str) else value
    fields["timeout"] = timeout or fields.get("timeout") or _DEFAULT_TIMEOUT
    return SrvName(hostname, **fields)


def srv_hostname(hosts: str) -> str:
    """Return the host of a ``mongodb+srv`` URI. Raise InvalidURI for several hosts, a port, or an IP address."""
    if "," in hosts:
        raise InvalidURI("a mongodb+srv URI must have exactly one host")
    if ":" in hosts and not hosts.startswith("["):
        raise InvalidURI("a mongodb+srv URI must not have a port")
    if "%" in hosts or not all(hosts.rstrip(".").split(".")) or _is_ip_address(hosts.strip("[]")):
        raise InvalidURI("the host of a mongodb+srv URI must be a domain name; did you mean mongodb://?")
    return hosts.lower().rstrip(".")


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

"""Hosts and options from DNS, for ``mongodb+srv`` URIs: SRV and TXT records.

DNS questions are asked with dnspython in a native thread, so that the loop is not held.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from gevent import get_hub, monkey

from gmongo import _chance
from gmongo._documents import Document, DocumentDict
from gmongo._safe_log import printable, safely
from gmongo._threads import in_a_thread
from gmongo.errors import ConfigurationError, InvalidURI
from gmongo.options.mapping import Options
from gmongo.options.query import names_of, split_options
from gmongo.options.table import find

_log = logging.getLogger("gmongo.topology")

DEFAULT_SERVICE_NAME = "mongodb"
_DEFAULT_TIMEOUT = 20.0
_OPTIONS_IN_TXT = frozenset(("authsource", "replicaset", "loadbalanced"))

# Option, and the field of SrvName that it sets.
_FIELDS = {
    "srvservicename": "service_name",
    "srvmaxhosts": "max_hosts",
    "srvallowedhostssuffix": "allowed_suffix",
    "srv_host_validator": "host_validator",
    "connecttimeoutms": "timeout",
}

HostPort = tuple[str, int]


class Answer(NamedTuple):
    """What DNS said.

    :param records: pairs of host and port from SRV records, or the text of each TXT record.
    :param ttl: how long the answer may be kept, in seconds.
    """

    records: list[Any]
    ttl: int = 0


Lookup = Callable[[str, str, float], Answer]


def lookup(name: str, record_type: str, timeout: float, ref: bool = True) -> Answer:
    """Ask DNS, in a native thread. A test may put another function in the place of this one.

    :param name: the domain name.
    :param record_type: ``"SRV"`` or ``"TXT"``.
    :param timeout: in seconds, for the question with all its retries.
    :param ref: whether this keeps the hub running.
    :returns: the answer; without records if there are none, or the name does not exist.
    :raises gmongo.errors.ConfigurationError: if DNS fails otherwise.
    """
    import dns.resolver

    def job() -> Answer:
        try:
            return _to_answer(record_type, dns.resolver.resolve(name, record_type, lifetime=timeout))
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return Answer([])
        finally:
            if monkey.is_module_patched("socket"):  # dnspython's sockets have made a hub in this thread
                get_hub().destroy(destroy_loop=True)

    outcome = in_a_thread(job, ref)
    if isinstance(outcome, Answer):
        return outcome
    raise ConfigurationError(f"DNS gave no {record_type} records of {name}: {outcome}") from outcome


def _to_answer(record_type: str, reply: Any) -> Answer:
    records: list[Any]
    if record_type == "SRV":
        records = [(str(record.target), record.port) for record in reply]
    else:
        records = [b"".join(record.strings).decode("utf-8") for record in reply]
    return Answer(records, reply.rrset.ttl)


@dataclass(frozen=True)
class SrvName:
    """The name in a ``mongodb+srv`` URI, and how it is to be resolved.

    :param hostname: the host of the URI.
    :param service_name: ``srvServiceName``.
    :param max_hosts: ``srvMaxHosts``; 0 is without limit.
    :param allowed_suffix: ``srvAllowedHostsSuffix``, the domain that hosts have to lie in instead of the one
        of `hostname`.
    :param host_validator: called with each host, in place of the check of its domain; true accepts the host.
    :param timeout: of each DNS question, in seconds.
    """

    hostname: str
    service_name: str = DEFAULT_SERVICE_NAME
    max_hosts: int = 0
    allowed_suffix: str | None = None
    host_validator: Callable[[str], object] | None = None
    timeout: float = _DEFAULT_TIMEOUT

    def all_hosts(self, ref: bool = True) -> Answer:
        """Every host that the SRV records name, with the time the answer may be kept.

        :param ref: whether the query keeps the hub running.
        :raises gmongo.errors.ConfigurationError: if DNS fails or knows no such records, or a host lies
            outside of the allowed domain.
        """
        answer = self._look_up(ref)
        for host, _ in answer.records:
            if not self._accepts(host):
                raise ConfigurationError(self._complaint(host))
        return answer

    def verified_hosts(self) -> Answer:
        """The hosts that the SRV records name and that are allowed; others are left out with a warning. It is for
        greenlets in the background: the hub is not held.

        :raises gmongo.errors.ConfigurationError: if DNS fails, or no host is left.
        """
        answer = self._look_up(ref=False)
        accepted = []
        for host, port in answer.records:
            if self._accepts(host):
                accepted.append((host, port))
            else:
                safely(_log.warning, "%s", printable(self._complaint(host)))
        if not accepted:
            raise ConfigurationError(f"the SRV records of {self.hostname} name no host that is allowed")
        return Answer(accepted, answer.ttl)

    def _look_up(self, ref: bool) -> Answer:
        question = f"_{self.service_name}._tcp.{self.hostname}"
        answer = lookup(question, "SRV", self.timeout, ref)
        if not answer.records:
            raise ConfigurationError(f"there are no hosts for the URI: DNS has no SRV records of {question}")
        return Answer([(host.lower().rstrip("."), port) for host, port in answer.records], answer.ttl)

    def seeds(self, ref: bool = True) -> list[HostPort]:
        """The hosts to begin with: all of them, or as many at random as `max_hosts` allows.

        :param ref: whether the query keeps the hub running.
        :raises gmongo.errors.ConfigurationError: as :meth:`all_hosts`.
        """
        hosts: list[HostPort] = self.all_hosts(ref).records
        return _chance.sample(hosts, self.max_hosts) if 0 < self.max_hosts < len(hosts) else hosts

    def options(self, validate: bool, warn: bool, normalize: bool, ref: bool = True) -> Options:
        """The options in the TXT record of the host; empty without such a record.

        :param ref: whether the query keeps the hub running.
        :raises gmongo.errors.ConfigurationError: if DNS fails, there are several records, or one has an
            option other than authSource, replicaSet and loadBalanced.
        """
        records = lookup(self.hostname, "TXT", self.timeout, ref).records
        if not records:
            return Options()
        if len(records) > 1:
            raise ConfigurationError(f"{self.hostname} must have one TXT record at most, not {len(records)}")
        options = split_options(records[0], validate, warn, normalize)
        forbidden = options.keys() - _OPTIONS_IN_TXT
        if forbidden:
            raise ConfigurationError(
                f"the TXT record of {self.hostname} may have only authSource, replicaSet and loadBalanced,"
                f" not {names_of(forbidden)}"
            )
        return options

    def _accepts(self, host: str) -> bool:
        if self.host_validator is not None:
            return bool(_ask(self.host_validator, host))
        return host.endswith(f".{self._domain}")

    @property
    def _domain(self) -> str:
        return self.allowed_suffix or own_domain(self.hostname)

    def _complaint(self, host: str) -> str:
        judge = self._domain if self.host_validator is None else "srv_host_validator"
        return f"the SRV records of {self.hostname} name the host {host!r}, which {judge} does not allow"


def srv_name(hostname: str, options: Document, timeout: float | None = None) -> SrvName:
    """The name to resolve, as the options of a client ask for it.

    :param hostname: the host of the URI.
    :param options: by their names in lower case; strings that were not validated yet are converted.
    :param timeout: of each DNS question, in seconds; by default connectTimeoutMS, or 20 without that.
    :raises gmongo.errors.ConfigurationError: if an option has a value that it does not accept.
    """
    fields: DocumentDict = {}
    for key, field in _FIELDS.items():
        option = find(key)
        value = options.get(key)
        if option is not None and value is not None:
            fields[field] = option.check(value) if isinstance(value, str) else value
    fields["timeout"] = timeout or fields.get("timeout") or _DEFAULT_TIMEOUT
    return SrvName(hostname, **fields)


def srv_hostname(hosts: str) -> str:
    """The host of a ``mongodb+srv`` URI, checked before DNS is asked.

    :raises gmongo.errors.InvalidURI: if there are several hosts, a port, or an IP address.
    """
    if "," in hosts:
        raise InvalidURI("a mongodb+srv URI must have exactly one host")
    if ":" in hosts and not hosts.startswith("["):
        raise InvalidURI("a mongodb+srv URI must not have a port")
    if "%" in hosts or not all(hosts.rstrip(".").split(".")) or _is_ip_address(hosts.strip("[]")):
        raise InvalidURI("the host of a mongodb+srv URI must be a domain name; did you mean mongodb://?")
    return hosts.lower().rstrip(".")


def own_domain(hostname: str) -> str:
    """The domain that the hosts from SRV records have to lie in.

    It is `hostname` without its first label; all of it, if it has fewer than three labels.
    """
    return hostname.partition(".")[2] if hostname.count(".") >= 2 else hostname


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _ask(validator: Callable[[str], object], host: str) -> object:
    try:
        return validator(host)
    except Exception as error:
        raise ConfigurationError(f"srv_host_validator failed for the host {host!r}: {error}") from error

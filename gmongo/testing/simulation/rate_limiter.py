"""Ingress rate limiters of requests and connections: token buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmongo.testing import clock
from gmongo.testing.command import CommandError
from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.error_codes import name_of
from gmongo.testing.simulation.error_labels import OVERLOAD_LABELS

if TYPE_CHECKING:
    from gmongo.testing.simulation.member import Member

_OVERLOADED = 462
# The limiter admits commands on connections, sessions and transactions.
_EXEMPT = frozenset(
    {
        "abortTransaction", "authenticate", "commitTransaction", "configureFailPoint",
        "endSessions", "getParameter", "hello", "isMaster", "ismaster", "killCursors", "logout",
        "saslContinue", "saslStart", "setParameter",
    }
)  # fmt: skip


class TokenBucket:
    """Admits `rate` requests per second, and a burst after idle time."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._at: float | None = None

    def take(self, rate: float, burst: float) -> bool:
        """Return True if the bucket admits another request."""
        now = clock.monotonic()
        if self._at is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + (now - self._at) * rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class RateLimits:
    """The rate limiters of all members. Each member has its own buckets.

    The server parameters ``ingressRequest...`` and ``ingressConnectionEstablishment...`` configure them.

    :ivar rejected: the number of rejected requests and connections.
    """

    def __init__(self) -> None:
        self.rejected = 0
        self._requests: dict[str, TokenBucket] = {}
        self._connections: dict[str, TokenBucket] = {}

    def admit_request(self, call: Call) -> None:
        """Admit a command.

        :raises CommandError: the rate is exceeded.
        """
        parameters = call.member.parameters
        if not parameters["ingressRequestRateLimiterEnabled"] or call.name in _EXEMPT:
            return
        if not self._pass(self._requests, call.member, "ingressRequestAdmission"):
            message = "Rate limiter 'ingressRequestRateLimiter' rate exceeded"
            raise CommandError(_OVERLOADED, name_of(_OVERLOADED), message, OVERLOAD_LABELS)

    def admits_connection(self, member: Member) -> bool:
        """Return True if the limiter admits a new connection."""
        if not member.parameters["ingressConnectionEstablishmentRateLimiterEnabled"]:
            return True
        return self._pass(self._connections, member, "ingressConnectionEstablishment")

    def reset(self) -> None:
        """Use new buckets, which are full."""
        self._requests.clear()
        self._connections.clear()

    def _pass(self, buckets: dict[str, TokenBucket], member: Member, prefix: str) -> bool:
        parameters: dict[str, Any] = member.parameters
        rate = parameters[f"{prefix}RatePerSec"]
        burst = max(1.0, rate * parameters[f"{prefix}BurstCapacitySecs"])
        passes = buckets.setdefault(member.address, TokenBucket()).take(rate, burst)
        self.rejected += not passes
        return passes

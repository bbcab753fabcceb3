"""The ingress rate limiters, of requests and of connections: token buckets."""

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
# What keeps a connection, a session or a transaction in order is never refused.
_EXEMPT = frozenset(
    {
        "abortTransaction",
        "authenticate",
        "commitTransaction",
        "configureFailPoint",
        "endSessions",
        "getParameter",
        "hello",
        "isMaster",
        "ismaster",
        "killCursors",
        "logout",
        "saslContinue",
        "saslStart",
        "setParameter",
    }
)


class TokenBucket:
    """Lets `rate` a second through, and `burst` at once after a rest."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._at: float | None = None

    def take(self, rate: float, burst: float) -> bool:
        """Whether one more may pass now."""
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
    """The rate limiters of all members; each member has buckets of its own.

    They go by the server parameters ``ingressRequest...`` and ``ingressConnectionEstablishment...``.

    :ivar rejected: how many requests and connections have been refused.
    """

    def __init__(self) -> None:
        self.rejected = 0
        self._requests: dict[str, TokenBucket] = {}
        self._connections: dict[str, TokenBucket] = {}

    def admit_request(self, call: Call) -> None:
        """Let a command pass.

        :raises CommandError: there are too many.
        """
        parameters = call.member.parameters
        if not parameters["ingressRequestRateLimiterEnabled"] or call.name in _EXEMPT:
            return
        if not self._pass(self._requests, call.member, "ingressRequestAdmission"):
            message = "Rate limiter 'ingressRequestRateLimiter' rate exceeded"
            raise CommandError(_OVERLOADED, name_of(_OVERLOADED), message, OVERLOAD_LABELS)

    def admits_connection(self, member: Member) -> bool:
        """Whether a new connection may pass."""
        if not member.parameters["ingressConnectionEstablishmentRateLimiterEnabled"]:
            return True
        return self._pass(self._connections, member, "ingressConnectionEstablishment")

    def reset(self) -> None:
        """Begin with full buckets."""
        self._requests.clear()
        self._connections.clear()

    def _pass(self, buckets: dict[str, TokenBucket], member: Member, prefix: str) -> bool:
        parameters: dict[str, Any] = member.parameters
        rate = parameters[f"{prefix}RatePerSec"]
        burst = max(1.0, rate * parameters[f"{prefix}BurstCapacitySecs"])
        passes = buckets.setdefault(member.address, TokenBucket()).take(rate, burst)
        self.rejected += not passes
        return passes

"""The ingress rate limiters of requests and connections. Each member has two token buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmongo.testing import clock
from gmongo.testing.command import error
from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.error_labels import OVERLOAD_LABELS

if TYPE_CHECKING:
    from gmongo.testing.simulation.member import Member

_OVERLOADED_CODE = 462
# The request limiter always admits these commands, which concern connections, cursors, sessions,
# transactions and settings.
_EXEMPT_COMMANDS = frozenset(
    {
        "abortTransaction", "authenticate", "commitTransaction", "configureFailPoint",
        "endSessions", "getParameter", "hello", "isMaster", "ismaster", "killCursors", "logout",
        "saslContinue", "saslStart", "setParameter"
    }
)  # fmt: skip


class TokenBucket:
    """A bucket of tokens. Each admission takes a token, and each second adds `rate` tokens."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._updated_at: float | None = None

    def take_token(self, rate: float, burst: float) -> bool:
        """Take a token. Return False if the bucket is empty. A full bucket admits `burst` requests at once."""
        now = clock.monotonic()
        self._tokens = burst if self._updated_at is None else min(burst, self._tokens + (now - self._updated_at) * rate)
        self._updated_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class RateLimits:
    """The rate limiters of all members. Each member has its own buckets, and its server parameters set the limits."""

    def __init__(self) -> None:
        self.rejected_count = 0  # the number of rejected requests and connections
        self._request_buckets: dict[str, TokenBucket] = {}
        self._connection_buckets: dict[str, TokenBucket] = {}

    def admit_request(self, call: Call) -> None:
        """Raise an error if the limiter does not admit a command."""
        parameters = call.member.parameters
        if not parameters["ingressRequestRateLimiterEnabled"] or call.name in _EXEMPT_COMMANDS:
            return
        if not self._admit(self._request_buckets, call.member, "ingressRequestAdmission"):
            message = "Rate limiter 'ingressRequestRateLimiter' rate exceeded"
            raise error(_OVERLOADED_CODE, message, OVERLOAD_LABELS)

    def admits_connection(self, member: Member) -> bool:
        if not member.parameters["ingressConnectionEstablishmentRateLimiterEnabled"]:
            return True
        return self._admit(self._connection_buckets, member, "ingressConnectionEstablishment")

    def reset(self) -> None:
        """Replace all buckets by new, full buckets."""
        self._request_buckets.clear()
        self._connection_buckets.clear()

    def _admit(self, buckets: dict[str, TokenBucket], member: Member, prefix: str) -> bool:
        parameters: dict[str, Any] = member.parameters
        rate = parameters[f"{prefix}RatePerSec"]
        burst = max(1.0, rate * parameters[f"{prefix}BurstCapacitySecs"]) if rate else 0.0
        is_admitted = buckets.setdefault(member.address, TokenBucket()).take_token(rate, burst)
        self.rejected_count += not is_admitted
        return is_admitted

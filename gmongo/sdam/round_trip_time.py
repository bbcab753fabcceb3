"""Round trip times of one server: a moving average and a minimum (SM-70 to SM-80, SM-122)."""

from __future__ import annotations

from collections import deque

_WEIGHT_OF_NEWEST = 0.2
_SAMPLES_KEPT = 10


class RoundTripTime:
    """Round trip times of one server in seconds."""

    def __init__(self) -> None:
        self._average: float | None = None
        self._recent: deque[float] = deque(maxlen=_SAMPLES_KEPT)

    def add_sample(self, seconds: float) -> None:
        seconds = max(seconds, 0.0)
        self._recent.append(seconds)
        if self._average is None:
            self._average = seconds
        else:
            self._average = _WEIGHT_OF_NEWEST * seconds + (1 - _WEIGHT_OF_NEWEST) * self._average

    @property
    def average(self) -> float | None:
        """Exponentially weighted moving average, or None if there is no sample."""
        return self._average

    @property
    def minimum(self) -> float:
        """Minimum of the last ten samples, or 0 if there are fewer than two samples."""
        return min(self._recent) if len(self._recent) >= 2 else 0.0

    def reset(self) -> None:
        self._average = None
        self._recent.clear()

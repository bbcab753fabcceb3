"""Time limits: validated arguments, deadlines and remaining times."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from gmongo import _clock
from gmongo.errors import ConfigurationError
from gmongo.execution.deadline import (
    check_await_time,
    checked_timeout,
    current_deadline,
    deadline_after,
    remaining,
    timeout,
    until,
    without_wtimeout,
)
from tests.support.cases import with_cases


@pytest.fixture(autouse=True)
def fixed_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)


def test_timeout_determines_deadline_and_remaining_time() -> None:
    for seconds, deadline, remaining_time in ((None, None, None), (0, inf, None), (5, 1005.0, 5.0), (0.5, 1000.5, 0.5)):
        assert deadline_after(seconds, "timeoutMS") == deadline and remaining(deadline) == remaining_time
    assert remaining(999.0) == -1.0


@with_cases
@pytest.mark.parametrize("body_raises", [False, True])
def test_earlier_deadline_of_nested_blocks_applies(outer: Any, inner: Any, current: Any, body_raises: bool) -> None:
    with until(outer):
        try:
            with until(inner):
                assert current_deadline() == current
                if body_raises:
                    raise KeyError
        except KeyError:
            pass
        assert current_deadline() == outer
    assert current_deadline() is None


def test_timeout_sets_deadline_of_block_and_rejects_invalid_seconds() -> None:
    for seconds, deadline in ((None, None), (0, inf), (2, 1002.0), (0.25, 1000.25)):
        with timeout(seconds):
            assert current_deadline() == deadline
    for wrong in (True, "5", [5]):
        with pytest.raises(TypeError) as caught:
            timeout(wrong)  # type: ignore[arg-type]
        assert str(caught.value) == f"timeout must be a number of seconds or None, not {wrong!r}"
    with pytest.raises(ValueError, match=r"^timeout must be 0 or more seconds, not -1$"):
        timeout(-1)


def test_checked_timeout_converts_milliseconds_and_rejects_invalid_values() -> None:
    for milliseconds, seconds in ((None, None), (0, 0), (1500, 1.5), (0.5, 0.0005)):
        assert checked_timeout("x", milliseconds) == seconds
    for wrong in (False, "5"):
        with pytest.raises(TypeError) as caught:
            checked_timeout("x", wrong)
        assert str(caught.value) == f"x must be a number of milliseconds or None, not {wrong!r}"
    for negative in (-1, -0.5, nan):
        with pytest.raises(ValueError) as raised:
            checked_timeout("x", negative)
        assert str(raised.value) == f"x must be 0 or more milliseconds, not {negative!r}"


@pytest.mark.parametrize(
    ("milliseconds", "deadline", "remaining_text"),
    [(2000, 1002.0, "2000"), (2001, 1002.0, "2000"), (1, 1000.001, "1"), (5, 999.0, "0")],
)
def test_await_time_above_remaining_time_raises(milliseconds: int, deadline: float, remaining_text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_await_time(milliseconds, deadline)
    assert str(caught.value) == (
        "max_await_time_ms must be less than the time that is left of the limit of the operation, "
        f"but {milliseconds} ms is not less than {remaining_text} ms"
    )


@pytest.mark.parametrize(("milliseconds", "deadline"), [(1999, 1002.0), (None, 1002.0), (5000, None), (5000, inf)])
def test_await_time_below_remaining_time_is_accepted(milliseconds: int | None, deadline: float | None) -> None:
    check_await_time(milliseconds, deadline)


def test_removal_of_wtimeout_keeps_other_fields_of_write_concern() -> None:
    assert without_wtimeout({"w": 2, "wtimeout": 5, "j": True}) == {"w": 2, "j": True}

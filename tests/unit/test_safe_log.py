"""A failing log handler never interrupts the driver."""

from __future__ import annotations

import logging
from typing import Any

import gevent
import pytest

from gmongo._safe_log import safely


@pytest.mark.parametrize("raise_exceptions", [False, True])
def test_exception_of_log_handler_is_printed_only_if_logging_raises_exceptions(
    raise_exceptions: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(logging, "raiseExceptions", raise_exceptions)
    safely(fail, "text", exc_info=True)
    assert ("the disk is full" in capsys.readouterr().err) is raise_exceptions


@pytest.mark.parametrize("interruption", [gevent.GreenletExit(), gevent.Timeout(1)])
def test_interruption_of_log_handler_passes(interruption: BaseException) -> None:
    def interrupt() -> None:
        raise interruption

    with pytest.raises(type(interruption)):
        safely(interrupt)

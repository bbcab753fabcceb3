"""What an error that leaves a function with secrets shows of the frames that it went through."""

from __future__ import annotations

from collections.abc import Callable
from traceback import walk_tb
from typing import Any

import pytest

from gmongo._traceback_scrub import forgets_locals


def code_in(module: str, source: str, **names: Any) -> Callable[..., Any]:
    """The function `f` that the source defines, as if it stood in a module of that name."""
    namespace = {"__name__": module, **names}
    exec(source, namespace)
    function: Callable[..., Any] = namespace["f"]
    return function


def shown(error: BaseException) -> set[str]:
    """The modules of the frames of an error that still show a secret."""
    return {
        frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__) if "secret" in frame.f_locals.values()
    }


FAILS = "def f(value):\n    raise ValueError"


def caught_by(function: Callable[..., Any]) -> BaseException:
    with pytest.raises(BaseException) as caught:
        forgets_locals(function)("secret")
    return caught.value


@pytest.mark.parametrize(
    "module", ["bson", "gevent._x", "gmongo.auth", "http.client", "pymongocrypt.x", "ssl", "urllib"]
)
def test_what_the_driver_passes_secrets_to_forgets_them(module: str) -> None:
    assert shown(caught_by(code_in(module, FAILS))) == set()


@pytest.mark.parametrize("module", ["app", "gmongo_app", "app.gmongo"])
def test_the_application_s_code_keeps_its_locals(module: str) -> None:
    assert shown(caught_by(code_in(module, FAILS))) == {module}


def test_locals_between_those_of_the_application_are_forgotten() -> None:
    innermost = code_in("gmongo.x", FAILS)
    callback = code_in("app", "def f(value):\n    inner(value)", inner=innermost)
    assert shown(caught_by(code_in("gmongo.y", "def f(value):\n    inner(value)", inner=callback))) == {"app"}


@pytest.mark.parametrize("how", ["raise KeyError from error", "raise KeyError from None", "raise KeyError"])
def test_the_errors_behind_an_error_forget_them_too(how: str) -> None:
    source = f"def f(value):\n    try:\n        inner(value)\n    except ValueError as error:\n        {how}"
    error = caught_by(code_in("gmongo.y", source, inner=code_in("gmongo.x", FAILS)))
    assert isinstance(error, KeyError) and error.__context__ is not None
    assert shown(error) | shown(error.__context__) == set()


def test_errors_that_lead_to_each_other() -> None:
    def fail(_: str) -> None:
        one, other = ValueError(), KeyError()
        one.__cause__, other.__cause__ = other, one
        raise one

    assert isinstance(caught_by(fail), ValueError)


def test_a_long_chain_is_gone_through_once() -> None:
    """Each error is both cause and context of the next: as many ways lead to the first as two to the power of its
    distance.
    """
    error: Exception = ValueError()
    for _ in range(200):
        following = ValueError()
        following.__cause__ = following.__context__ = error
        error = following

    def fail(_: str) -> None:
        raise error

    assert caught_by(fail) is error


def test_frames_that_still_run_keep_their_locals() -> None:
    def f(value: str) -> None:
        with pytest.raises(ValueError):
            forgets_locals(code_in("gmongo.x", "def f(value):\n    caller(value)", caller=code_in("gmongo.z", FAILS)))(
                value
            )
        assert value == "secret"

    f("secret")


def test_what_is_returned_is_returned() -> None:
    assert forgets_locals(lambda *arguments, **named: (arguments, named))(1, 2, x=3) == ((1, 2), {"x": 3})
    assert forgets_locals(shown).__name__ == "shown"


def test_the_errors_behind_one_that_leads_back_forget_them_too() -> None:
    secret = caught_by_itself(code_in("gmongo.x", FAILS))

    def fail(_: str) -> None:
        one, other = ValueError(), KeyError()
        one.__cause__, one.__context__, other.__context__ = secret, other, one
        raise one

    caught_by(fail)
    assert shown(secret) == set()


def caught_by_itself(function: Callable[..., Any]) -> BaseException:
    with pytest.raises(ValueError) as caught:
        function("secret")
    return caught.value

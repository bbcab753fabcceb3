"""Local variables in the traceback of an error that leaves a function with secrets."""

from __future__ import annotations

from collections.abc import Callable
from traceback import walk_tb
from typing import Any

import pytest

from gmongo._traceback_scrub import clears_locals


def code_in(module: str, source: str, **names: Any) -> Callable[..., Any]:
    """Return the function `f` of `source`, defined in a module with the given name."""
    namespace = {"__name__": module, **names}
    exec(source, namespace)
    function: Callable[..., Any] = namespace["f"]
    return function


def modules_with_secret(error: BaseException) -> set[str]:
    """Return the modules whose frames in the traceback still contain a secret."""
    return {
        frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__) if "secret" in frame.f_locals.values()
    }


RAISING = "def f(value):\n    raise ValueError"


def scrubbed_error(function: Callable[..., Any]) -> BaseException:
    with pytest.raises(BaseException) as caught:
        clears_locals(function)("secret")
    return caught.value


@pytest.mark.parametrize(
    "module", ["bson", "gevent._x", "gmongo.auth", "http.client", "pymongocrypt.x", "ssl", "urllib"]
)
def test_frames_of_driver_and_libraries_lose_locals(module: str) -> None:
    assert modules_with_secret(scrubbed_error(code_in(module, RAISING))) == set()


@pytest.mark.parametrize("module", ["app", "gmongo_app", "app.gmongo"])
def test_frames_of_application_keep_locals(module: str) -> None:
    assert modules_with_secret(scrubbed_error(code_in(module, RAISING))) == {module}


def test_driver_frames_around_application_callback_lose_locals() -> None:
    innermost = code_in("gmongo.x", RAISING)
    callback = code_in("app", "def f(value):\n    inner(value)", inner=innermost)
    assert modules_with_secret(
        scrubbed_error(code_in("gmongo.y", "def f(value):\n    inner(value)", inner=callback))
    ) == {"app"}


@pytest.mark.parametrize("how", ["raise KeyError from error", "raise KeyError from None", "raise KeyError"])
def test_frames_of_chained_errors_lose_locals(how: str) -> None:
    source = f"def f(value):\n    try:\n        inner(value)\n    except ValueError as error:\n        {how}"
    error = scrubbed_error(code_in("gmongo.y", source, inner=code_in("gmongo.x", RAISING)))
    assert isinstance(error, KeyError) and error.__context__ is not None
    assert modules_with_secret(error) | modules_with_secret(error.__context__) == set()


def test_cyclic_error_chain_is_accepted() -> None:
    def fail(_: str) -> None:
        one, other = ValueError(), KeyError()
        one.__cause__, other.__cause__ = other, one
        raise one

    assert isinstance(scrubbed_error(fail), ValueError)


def test_each_error_of_long_chain_is_visited_once() -> None:
    """Each error is cause and context of the next error, so the number of paths grows exponentially."""
    error: Exception = ValueError()
    for _ in range(200):
        following = ValueError()
        following.__cause__ = following.__context__ = error
        error = following

    def fail(_: str) -> None:
        raise error

    assert scrubbed_error(fail) is error


def test_running_frames_keep_locals() -> None:
    def f(value: str) -> None:
        with pytest.raises(ValueError):
            clears_locals(code_in("gmongo.x", "def f(value):\n    caller(value)", caller=code_in("gmongo.z", RAISING)))(
                value
            )
        assert value == "secret"

    f("secret")


def test_wrapper_returns_result_and_keeps_name() -> None:
    assert clears_locals(lambda *arguments, **named: (arguments, named))(1, 2, x=3) == ((1, 2), {"x": 3})
    assert clears_locals(modules_with_secret).__name__ == "modules_with_secret"


def test_cause_in_cyclic_error_chain_loses_locals() -> None:
    secret = error_without_scrub(code_in("gmongo.x", RAISING))

    def fail(_: str) -> None:
        one, other = ValueError(), KeyError()
        one.__cause__, one.__context__, other.__context__ = secret, other, one
        raise one

    scrubbed_error(fail)
    assert modules_with_secret(secret) == set()


def error_without_scrub(function: Callable[..., Any]) -> BaseException:
    with pytest.raises(ValueError) as caught:
        function("secret")
    return caught.value

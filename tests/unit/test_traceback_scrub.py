"""`clears_locals` removes secrets from the local variables in the traceback of an error."""

from __future__ import annotations

from collections.abc import Callable
from traceback import walk_tb
from typing import Any

import pytest

from gmongo._traceback_scrub import clears_locals


def function_in_module(module: str, source: str, **names: Any) -> Callable[..., Any]:
    """Execute `source` in a module with the given name and variables, and return the function `f`."""
    namespace = {"__name__": module, **names}
    exec(source, namespace)
    function: Callable[..., Any] = namespace["f"]
    return function


def modules_with_secret(error: BaseException) -> set[str]:
    """Return the modules whose frames in the traceback still contain a secret."""
    return {
        frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__) if "secret" in frame.f_locals.values()
    }


RAISING_CODE = "def f(value):\n    raise ValueError"


def scrubbed_error(function: Callable[..., Any]) -> BaseException:
    with pytest.raises(BaseException) as caught:
        clears_locals(function)("secret")
    return caught.value


@pytest.mark.parametrize(
    "module", ["bson", "gevent._x", "gmongo.auth", "http.client", "pymongocrypt.x", "ssl", "urllib"]
)
def test_frames_of_driver_and_libraries_lose_locals(module: str) -> None:
    assert modules_with_secret(scrubbed_error(function_in_module(module, RAISING_CODE))) == set()


@pytest.mark.parametrize("module", ["app", "gmongo_app", "app.gmongo"])
def test_frames_of_application_keep_locals(module: str) -> None:
    assert modules_with_secret(scrubbed_error(function_in_module(module, RAISING_CODE))) == {module}


def test_driver_frames_around_application_callback_lose_locals() -> None:
    innermost = function_in_module("gmongo.x", RAISING_CODE)
    callback = function_in_module("app", "def f(value):\n    inner(value)", inner=innermost)
    assert modules_with_secret(
        scrubbed_error(function_in_module("gmongo.y", "def f(value):\n    inner(value)", inner=callback))
    ) == {"app"}


@pytest.mark.parametrize("raise_statement", ["raise KeyError from error", "raise KeyError from None", "raise KeyError"])
def test_frames_of_chained_errors_lose_locals(raise_statement: str) -> None:
    source = (
        f"def f(value):\n    try:\n        inner(value)\n    except ValueError as error:\n        {raise_statement}"
    )
    error = scrubbed_error(function_in_module("gmongo.y", source, inner=function_in_module("gmongo.x", RAISING_CODE)))
    assert isinstance(error, KeyError) and error.__context__ is not None
    assert modules_with_secret(error) | modules_with_secret(error.__context__) == set()


def test_each_error_of_long_chain_is_visited_once() -> None:
    """Chain 200 errors by cause and by context, so that 2**200 paths exist in the chain."""
    error: Exception = ValueError()
    for _ in range(200):
        next_error = ValueError()
        next_error.__cause__ = next_error.__context__ = error
        error = next_error

    def fail(_: str) -> None:
        raise error

    assert scrubbed_error(fail) is error


def test_frames_of_running_functions_keep_locals() -> None:
    def caller(value: str) -> None:
        with pytest.raises(ValueError):
            clears_locals(
                function_in_module(
                    "gmongo.x", "def f(value):\n    caller(value)", caller=function_in_module("gmongo.z", RAISING_CODE)
                )
            )(value)
        assert value == "secret"

    caller("secret")


def test_cause_in_cyclic_error_chain_loses_locals() -> None:
    secret = error_without_scrub(function_in_module("gmongo.x", RAISING_CODE))

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

"""Run tests of changed functions in a pytest process that is already running.

The pytest process imports all modules only once. For each change, the process forks, and the child
replaces the code of the changed functions. If code that runs on import changes, a new process is
necessary (see :mod:`tests.mutations.trials`). This module is also the plugin of the pytest process
(``-p tests.mutations.forking_pytest``). The plugin collects the tests, and waits for requests.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from types import CodeType, FunctionType

import pytest

from tests.mutations.change_kinds import behaviour_of
from tests.mutations.recording import WITHOUT_OFFICIAL_TESTS
from tests.mutations.trials import Outcome, ProgressWriter, environment, limit_memory, outcome_of

# Environment variable with the descriptor of the socket for requests.
_SOCKET = "GMONGO_FORKING_PYTEST"
_START_TIMEOUT = 120  # Seconds in which the process must collect the tests.
# The elapsed time of a run may be at most this multiple of the permitted processor time.
_ELAPSED_RATIO = 6


class RunsAtImport(Exception):
    """Raised if the change affects code outside functions, which runs on import."""


def changed_functions(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """For each function that a change affects, yield its code before and after the change.

    :raises RunsAtImport: the change also affects code outside functions.
    """
    if not _is_function(before) and _without_inner_code(before) != _without_inner_code(after):
        raise RunsAtImport(before.co_name)
    if _is_function(before):
        if (
            before.co_name.startswith("<") and before.co_name != "<lambda>"
        ):  # the code of a comprehension belongs to no function object
            raise RunsAtImport(before.co_name)
        if before.co_freevars != after.co_freevars:
            raise RunsAtImport(before.co_name)
        yield before, after
    inner = list(zip(_inner_codes(before), _inner_codes(after), strict=False))
    if len(_inner_codes(before)) == len(_inner_codes(after)) and all(old.co_name == new.co_name for old, new in inner):
        for old, new in inner:
            if behaviour_of(old) != behaviour_of(new) and (not _is_function(before) or not old.co_name.startswith("<")):
                yield from changed_functions(old, new)


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_OPTIMIZED)


def _inner_codes(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _without_inner_code(code: CodeType) -> object:
    """Return the value of :func:`behaviour_of` for a code object without its inner functions and classes."""
    nothing = (lambda: None).__code__
    return behaviour_of(
        code.replace(co_consts=tuple(nothing if isinstance(each, CodeType) else each for each in code.co_consts))
    )


class ForkingPytest:
    """A pytest process that has collected the tests in a copy of the project.

    :param root: the folder of the copy. No mutation may change the copy while the process starts.
    :param folders: the folders with the tests to collect.
    """

    def __init__(self, root: Path, folders: Iterable[str]) -> None:
        self._root = root
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-m",
                "not long",
                "--timeout-method=thread",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
                "-p",
                __name__,
                f"--basetemp={root}/tmp",
                *(f"tests/{folder}" for folder in folders),
            ],
            cwd=root,
            env=environment(root, {**WITHOUT_OFFICIAL_TESTS, _SOCKET: str(theirs.fileno())}),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=(root / "output").open("w"),
            stderr=subprocess.STDOUT,
        )
        theirs.close()
        self._file = ours.makefile("rw", encoding="utf-8")
        ours.close()
        self._answer()

    def first_failure(self, file: str, before: str, tests: Mapping[str, float], seconds: float) -> Outcome:
        """Run tests with the current text of a changed file, until a test fails. Return the outcome.

        If a test times out, repeat this test alone. The timeout counts only if the test fails
        again.

        :param file: the path of the changed file below ``gmongo``.
        :param before: the text that the file had at the start of the process.
        :param tests: the names of the tests, each with its timeout in seconds.
        :param seconds: the processor time in seconds, after which no further test starts.
        :raises RunsAtImport: the changed code runs on import, so that a new process is necessary.
        """
        left = dict(tests)
        while True:
            outcome = self._run(file, before, left, seconds)
            if not outcome.timed_out:
                return outcome
            alone = self._run(file, before, {outcome.failed: 2 * left.pop(outcome.failed)}, seconds)
            if alone.failed:
                return alone

    def _run(self, file: str, before: str, tests: Mapping[str, float], seconds: float) -> Outcome:
        path = self._root / "gmongo" / file
        pairs = changed_functions(
            compile(before, str(path), "exec", dont_inherit=True),
            compile(path.read_text("utf-8"), str(path), "exec", dont_inherit=True),
        )
        list(pairs)  # the iteration raises RunsAtImport if a new process is necessary
        progress = self._root / "progress"
        progress.write_text("", "utf-8")
        print(json.dumps([str(path), before, dict(tests), seconds, str(progress)]), file=self._file, flush=True)
        code = int(self._answer())
        return outcome_of(code, progress.read_text("utf-8").splitlines(), "")

    def _answer(self) -> str:
        if answer := self._file.readline():
            return answer
        raise RuntimeError((self._root / "output").read_text("utf-8")[-2000:])

    def close(self) -> None:
        self._file.close()
        self._process.wait()


class _Plugin:
    """Pytest plugin that waits for requests, and runs the requested tests in a forked child."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._file = socket.socket(fileno=descriptor).makefile("rw", encoding="utf-8")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        gc.unfreeze()
        functions: dict[tuple[str, int, str], list[FunctionType]] = {}
        for each in gc.get_objects():
            if type(each) is FunctionType and "/gmongo/" in each.__code__.co_filename:
                functions.setdefault(_place_of_code(each.__code__), []).append(each)
        gc.collect()
        gc.freeze()
        self._send("ready")
        for line in self._file:
            path, before, limits, seconds, progress = json.loads(line)
            pid = os.fork()
            if pid == 0:
                code = 3
                try:
                    os.setsid()
                    limit_memory()
                    _replace_functions(functions, Path(path), before)
                    # A requested test may not exist here: pytest collects fewer tests for a folder
                    # than for a file that the command line names.
                    chosen = [(items[name], limit) for name, limit in limits.items() if name in items]
                    code = _run(session, chosen, seconds, Path(progress))
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            self._send(str(_exit_code_of(pid, _START_TIMEOUT + 2 * _ELAPSED_RATIO * seconds)))
        return True

    def _send(self, text: str) -> None:
        print(text, file=self._file, flush=True)


def _exit_code_of(pid: int, seconds: float) -> int:
    """Wait until a child ends, or kill the child after a timeout. Return the exit code."""
    end = monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found or monotonic() > end:
            break
        sleep(0.005)
    try:  # kill the process group, which contains the processes of the tests
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if not found:
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _place_of_code(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


def _replace_functions(
    functions: Mapping[tuple[str, int, str], Sequence[FunctionType]], path: Path, before: str
) -> None:
    """For each changed function of a file, replace its code by the code in the current text of the file."""
    codes = (compile(text, str(path), "exec", dont_inherit=True) for text in (before, path.read_text("utf-8")))
    for old, new in changed_functions(*codes):
        for function in functions.get(_place_of_code(old), ()):
            function.__code__ = new


def _run(session: pytest.Session, items: Sequence[tuple[pytest.Item, float]], seconds: float, progress: Path) -> int:
    """Run tests until a test fails, or until the processor time exceeds the limit.

    The limit is a processor time, because the elapsed time depends on the load of the machine.
    """
    writer = ProgressWriter(progress)
    session.config.pluginmanager.register(writer, "progress")
    used, end = sum(os.times()[:4]), monotonic() + _ELAPSED_RATIO * seconds
    for number, (item, limit) in enumerate(items):
        if sum(os.times()[:4]) - used > seconds or monotonic() > end:
            break
        following = items[number + 1][0] if number + 1 < len(items) else None
        item.add_marker(pytest.mark.timeout(limit), append=False)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if writer.failed:
            session._setupstate.teardown_exact(None)
            return 1
    return 0


def pytest_configure(config: pytest.Config) -> None:
    if descriptor := os.environ.pop(_SOCKET, ""):
        config.pluginmanager.register(_Plugin(int(descriptor)), "warm")

"""A simulated deployment in a process of its own, for applications that do not run on gevent."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Any

import gevent

from gmongo.testing.process import TetheredProcess
from gmongo.testing.simulation.control import ask_control

_PROGRAM = "gmongo.testing.__main__:main"
_LOOK_EVERY = 0.01
_PATIENCE = 10.0


class DeploymentProcess:
    """Runs ``python -m gmongo.testing`` with these arguments; it ends with this process at the latest.

    Use it in a ``with``, or call :meth:`start` and :meth:`close`. What goes wrong is told it by :meth:`fault`, and by
    commands that any client sends: ``configureFailPoint``, ``replSetStepDown``, ``shutdown``.

    :param arguments: of the command line, such as ``("--replica-set", "3")``.
    :param start_timeout: seconds that it is given to become ready.
    :param environment: variables to set besides those of this process.
    """

    def __init__(
        self, *arguments: str, start_timeout: float = 30.0, environment: Mapping[str, str] | None = None
    ) -> None:
        self._arguments: Sequence[str] = arguments
        self._start_timeout = start_timeout
        self._environment = environment
        self._process: TetheredProcess | None = None
        self._control: Any = None
        self._uri: str | None = None

    @property
    def uri(self) -> str:
        """The connection string.

        :raises RuntimeError: it is not running.
        """
        if self._uri is None:
            raise RuntimeError("the deployment is not running: call start() or use a with")
        return self._uri

    def start(self) -> DeploymentProcess:
        """Start it and wait until it serves.

        :raises RuntimeError: it is running already, or is not ready in time; the message has its own output.
        """
        if self._process is not None:
            raise RuntimeError("the deployment is running already")
        ours, theirs = socket.socketpair()
        try:
            number = str(theirs.fileno())
            self._process = TetheredProcess(
                _PROGRAM,
                [*self._arguments, "--control", number],
                environment=self._environment,
                pass_fds=[theirs.fileno()],
            )
            ours.settimeout(_PATIENCE)
            self._control = ours.makefile("rw", encoding="utf-8")
            self._uri = self._await_uri(self._process)
        except BaseException:
            self.close()
            raise
        finally:
            theirs.close()
            ours.close()  # the file keeps it open
        return self

    def fault(self, member: int, name: str, *arguments: Any) -> None:
        """Let a member fail.

        :param member: its number, from 0.
        :param name: of a method of :class:`~gmongo.testing.simulation.member.Member`, such as ``freeze``.
        :param arguments: of the method.
        :raises RuntimeError: the deployment is not running.
        :raises ValueError: there is no such member or fault, or it cannot be done now.
        """
        if self._uri is None:
            raise RuntimeError("the deployment is not running: call start() or use a with")
        problem = ask_control(self._control, member, name, arguments)
        if problem is not None:
            raise ValueError(problem)

    def _await_uri(self, process: TetheredProcess) -> str:
        deadline = monotonic() + self._start_timeout
        while True:
            output = process.output()
            for line in output.splitlines():
                if line.startswith("mongodb://"):
                    return line
            if process.poll() is not None or monotonic() > deadline:
                raise RuntimeError(f"the deployment did not start. Its output was:\n{output or '(nothing)'}")
            gevent.sleep(_LOOK_EVERY)

    def close(self) -> None:
        """End it, with its data."""
        process, self._process, self._uri = self._process, None, None
        if self._control is not None:
            self._control.close()
            self._control = None
        if process is not None:
            process.end()

    def __enter__(self) -> DeploymentProcess:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

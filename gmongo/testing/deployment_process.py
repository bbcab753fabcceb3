"""A simulated deployment in a process of its own, for applications that do not run on gevent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from types import TracebackType

import gevent

from gmongo.testing.process import TetheredProcess

_PROGRAM = "gmongo.testing.__main__:main"
_LOOK_EVERY = 0.01


class DeploymentProcess:
    """Runs ``python -m gmongo.testing`` with these arguments; it ends with this process at the latest.

    Use it in a ``with``, or call :meth:`start` and :meth:`close`. What goes wrong is told it by commands, which any
    client sends: ``configureFailPoint``, ``replSetStepDown``, ``shutdown``.

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
        self._process = TetheredProcess(_PROGRAM, self._arguments, environment=self._environment)
        try:
            self._uri = self._await_uri(self._process)
        except BaseException:
            self.close()
            raise
        return self

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
        if process is not None:
            process.end()

    def __enter__(self) -> DeploymentProcess:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""A simulated deployment in a separate process, for applications that do not run on gevent."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import gevent

from gmongo.testing.channel import Channel
from gmongo.testing.plan import Plan
from gmongo.testing.process import TetheredProcess
from gmongo.testing.remote import RemoteDeployment

_TARGET = "gmongo.testing.__main__:main"
_CHECK_INTERVAL = 0.01  # seconds


class DeploymentProcess(RemoteDeployment):
    """A simulated deployment in a separate process.

    The separate process ends with this process, even if this process is killed. The class has the
    API of :class:`~gmongo.testing.Deployment`. Create a deployment with :meth:`standalone`,
    :meth:`replica_set`, :meth:`sharded` or :meth:`load_balanced`.
    The four methods also accept `start_timeout` and `environment`.
    Alternatively, pass the command-line arguments of ``python -m gmongo.testing`` to the class. Use
    the deployment in a ``with`` block, or call :meth:`start` and :meth:`close`.

    :param arguments: the command-line arguments of ``python -m gmongo.testing``, such as
        ``"--replica-set", "3"``.
    :param start_timeout: seconds until the deployment must be ready.
    :param environment: environment variables to set in addition to the variables of this process.
    """

    def __init__(
        self, *arguments: str, start_timeout: float = 30.0, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self._arguments: Sequence[str] = arguments
        self._plan: dict[str, Any] | None = None
        self._start_timeout = start_timeout
        self._environment = environment
        self._process: TetheredProcess | None = None
        self._channel: Channel | None = None

    @classmethod
    def _from_plan(cls, kind: str, settings: dict[str, Any]) -> DeploymentProcess:
        process_settings = {name: settings.pop(name) for name in ("start_timeout", "environment") if name in settings}
        deployment = cls(**process_settings)
        deployment._plan = Plan(kind, settings).to_message()
        return deployment

    def start(self) -> DeploymentProcess:
        """Start the process, and wait until the deployment accepts connections.

        :raises RuntimeError: the deployment is running already, or does not start in time. In the
            second case, the error message contains the output of the process.
        """
        if self._process is not None:
            raise RuntimeError("the deployment is running already")
        own_socket, child_socket = socket.socketpair()
        self._channel = Channel(own_socket)
        try:
            fd = child_socket.fileno()
            self._process = TetheredProcess(
                _TARGET, [*self._arguments, "--control", str(fd)], environment=self._environment, pass_fds=[fd]
            )
            child_socket.close()
            self._channel.send({"plan": self._plan})
            self._await_ready(self._process)
            self._connect(self._channel)
        except BaseException:
            self.close()
            raise
        finally:
            child_socket.close()
        return self

    def _await_ready(self, process: TetheredProcess) -> None:
        assert self._channel is not None
        deadline = monotonic() + self._start_timeout
        while not self._channel.is_readable():
            if monotonic() > deadline:
                raise RuntimeError(f"the deployment did not start in time. {_describe_output(process)}")
            gevent.sleep(_CHECK_INTERVAL)
        if self._channel.receive() is None:
            raise RuntimeError(f"the deployment did not start. {_describe_output(process)}")

    def close(self) -> None:
        """End the process, and remove the data of the deployment."""
        process, self._process = self._process, None
        channel, self._channel = self._channel, None
        self._disconnect()
        if channel is not None:
            channel.close()
        if process is not None:
            process.end()


def _describe_output(process: TetheredProcess) -> str:
    return f"The output of the process was:\n{process.output() or '(nothing)'}"

"""A simulated deployment in a process of its own, for applications that do not run on gevent."""

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

_PROGRAM = "gmongo.testing.__main__:main"
_LOOK_EVERY = 0.01


class DeploymentProcess(RemoteDeployment):
    """A deployment served by a process of its own, which ends with this process at the latest.

    It has all that :class:`~gmongo.testing.Deployment` has. Make one with :meth:`standalone`, :meth:`replica_set`,
    :meth:`sharded` or :meth:`load_balanced`, which also take `start_timeout` and `environment`; or with the arguments
    of ``python -m gmongo.testing``. Use it in a ``with``, or call :meth:`start` and :meth:`close`.

    :param arguments: of the command line, such as ``("--replica-set", "3")``.
    :param start_timeout: seconds that it is given to become ready.
    :param environment: variables to set besides those of this process.
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
    def _planned(cls, kind: str, settings: dict[str, Any]) -> DeploymentProcess:
        own = {name: settings.pop(name) for name in ("start_timeout", "environment") if name in settings}
        deployment = cls(**own)
        deployment._plan = Plan(kind, settings).to_message()
        return deployment

    def start(self) -> DeploymentProcess:
        """Start it and wait until it serves.

        :raises RuntimeError: it is running already, or is not ready in time; the message has its own output.
        """
        if self._process is not None:
            raise RuntimeError("the deployment is running already")
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        try:
            number = theirs.fileno()
            self._process = TetheredProcess(
                _PROGRAM,
                [*self._arguments, "--control", str(number)],
                environment=self._environment,
                pass_fds=[number],
            )
            theirs.close()
            self._channel.send({"plan": self._plan})
            self._await_ready(self._process)
            self._serves(self._channel)
        except BaseException:
            self.close()
            raise
        finally:
            theirs.close()
        return self

    def _await_ready(self, process: TetheredProcess) -> None:
        """Wait for its first message; other greenlets of this hub may run meanwhile."""
        assert self._channel is not None
        deadline = monotonic() + self._start_timeout
        while not self._channel.has_something():
            if monotonic() > deadline:
                raise RuntimeError(f"the deployment did not start in time. {_said(process)}")
            gevent.sleep(_LOOK_EVERY)
        if self._channel.receive() is None:
            raise RuntimeError(f"the deployment did not start. {_said(process)}")

    def close(self) -> None:
        """End it, with its data."""
        process, self._process = self._process, None
        channel, self._channel = self._channel, None
        self._ended()
        if channel is not None:
            channel.close()
        if process is not None:
            process.end()


def _said(process: TetheredProcess) -> str:
    return f"Its output was:\n{process.output() or '(nothing)'}"

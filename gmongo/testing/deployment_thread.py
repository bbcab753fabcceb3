"""A simulated deployment in a native thread, for tests of applications that do not run on gevent."""

from __future__ import annotations

import socket
import threading
from typing import Any

import gevent
from gevent import monkey
from gevent import socket as gevent_socket

from gmongo.testing.channel import Channel
from gmongo.testing.plan import Plan
from gmongo.testing.remote import RemoteDeployment
from gmongo.testing.simulation.control import create_exception_reply, raise_problem, serve_control
from gmongo.testing.virtual_time import install_loop


class DeploymentThread(RemoteDeployment):
    """A simulated deployment in a native thread with a separate hub.

    The deployment starts in milliseconds and needs no monkey-patching. The class has the API of
    :class:`~gmongo.testing.Deployment`. Create a deployment with :meth:`standalone`,
    :meth:`replica_set`, :meth:`sharded` or :meth:`load_balanced`. Use the deployment in a ``with``
    block, or call :meth:`start` and :meth:`close`. All threads share the Python interpreter.
    Therefore long computations in other threads delay this deployment, but do not delay a
    :class:`~gmongo.testing.DeploymentProcess`.

    :param plan: the kind and the settings of the deployment. :meth:`standalone` and similar methods
        create the plan. None (the default) means a standalone.
    """

    def __init__(self, plan: Plan | None = None) -> None:
        super().__init__()
        self._plan = plan or Plan("standalone", {})
        self._thread: threading.Thread | None = None
        self._channel: Channel | None = None

    @classmethod
    def _from_plan(cls, kind: str, settings: dict[str, Any]) -> DeploymentThread:
        return cls(Plan(kind, settings))

    def start(self) -> DeploymentThread:
        """Start the thread, and wait until the deployment accepts connections.

        :raises RuntimeError: the deployment is running already, or this program is monkey-patched.
            The threads of a monkey-patched program are greenlets. In such a program, use
            :class:`~gmongo.testing.Deployment`.
        :raises OSError: a port is in use.
        """
        if self._thread is not None:
            raise RuntimeError("the deployment is running already")
        if monkey.is_module_patched("threading") or monkey.is_module_patched("socket"):
            raise RuntimeError("a monkey-patched program has no native threads to serve a deployment: use Deployment")
        own_socket, thread_socket = socket.socketpair()
        self._channel = Channel(own_socket)
        arguments = (self._plan, thread_socket.detach())
        self._thread = threading.Thread(target=_serve, args=arguments, name="gmongo.testing", daemon=True)
        try:
            self._thread.start()
            start_reply = self._channel.receive()
            if start_reply is None:
                raise RuntimeError("the deployment did not start")
            raise_problem(start_reply)
            self._connect(self._channel)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End the thread, and remove the data of the deployment."""
        thread, self._thread = self._thread, None
        channel, self._channel = self._channel, None
        self._disconnect()
        if channel is not None:
            channel.close()
        if thread is not None:
            thread.join()


def _serve(plan: Plan, descriptor: int) -> None:
    hub: Any = gevent.get_hub()
    install_loop(hub, in_real_time=True)
    channel = Channel(gevent_socket.socket(fileno=descriptor))
    try:
        deployment = plan.create_deployment()
        try:
            deployment.start()
        except Exception as problem:
            channel.send(create_exception_reply(problem))
            return
        try:
            channel.send({})
            serve_control(channel, deployment)
        finally:
            deployment.close()
    finally:
        channel.close()
        gevent.sleep(0)  # the killed greenlets must end before the hub is destroyed
        hub.destroy(destroy_loop=True)

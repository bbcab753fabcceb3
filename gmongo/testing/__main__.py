"""``python -m gmongo.testing``: run a simulated deployment, or a replica set of `mongod` processes.

The program prints the connection string on one line. The program serves clients until SIGTERM or
SIGINT arrives. If standard input is a pipe, the program also ends when the pipe is closed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import gevent
from gevent import os as gevent_os
from gevent import socket
from gevent.event import Event

from gmongo.testing.channel import Channel
from gmongo.testing.embedded_replica_set import EmbeddedReplicaSet
from gmongo.testing.virtual_time import install_loop

if TYPE_CHECKING:
    from gmongo.testing.deployment import Deployment

# The functions for simulated deployments import the simulation, because `--mongod` does not need its packages.

# Duration of one wait in seconds. The timer of the wait keeps the hub running, because a deployment does not.
_WAIT_SECONDS = 3600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the deployment that the arguments or parent process describe. Return the exit status."""
    parser = _create_parser()
    options = parser.parse_args(arguments)
    channel = None
    deployment: Deployment | EmbeddedReplicaSet
    if options.control is not None:
        install_loop(gevent.get_hub(), in_real_time=True)
        channel = Channel(socket.socket(fileno=options.control))
    try:
        if options.mongod is None:
            deployment = _receive_deployment(channel) or _create_deployment(options)
        else:
            deployment = _create_replica_set(options, parser.get_default)
        deployment.start()
    except (ValueError, RuntimeError, OSError) as problem:
        parser.error(str(problem))
    end_event = Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(signal_number, end_event.set)
    gevent.spawn(_watch_input, end_event)
    if channel is not None:
        from gmongo.testing.simulation.control import serve_control

        channel.send({})
        gevent.spawn(serve_control, channel, deployment)
    try:
        print(deployment.uri, flush=True)
        while not end_event.wait(_WAIT_SECONDS):
            pass
    finally:
        deployment.close()
    return 0


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gmongo.testing", description="A MongoDB deployment for tests.")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--standalone", action="store_true", help="one server (the default)")
    kinds.add_argument("--replica-set", type=int, metavar="N", help="a replica set of N members with data")
    kinds.add_argument("--sharded", type=int, metavar="N", help="a sharded cluster of N mongos")
    kinds.add_argument("--load-balanced", type=int, metavar="N", help="N services behind a load balancer")
    kinds.add_argument("--mongod", type=int, metavar="N", help="a replica set of N mongod processes, not simulated")
    parser.add_argument("--name", default="rs0", help="the name of the replica set")
    parser.add_argument("--arbiters", type=int, default=0, metavar="N", help="the number of arbiters")
    parser.add_argument(
        "--election-delay", type=float, default=0.1, metavar="SECONDS", help="the delay of elections after a failure"
    )
    parser.add_argument("--version", default="8.0", help="the version of the simulated server")
    parser.add_argument("--port", type=int, default=0, help="the first member's port; others have the next ports")
    parser.add_argument("--user", action="append", metavar="NAME:PASSWORD", help="enable access control, add this user")
    parser.add_argument("--parameter", action="append", metavar="NAME=JSON", default=[], help="set a server parameter")
    parser.add_argument("--tls", action="store_true", help="require TLS, with a generated certificate")
    parser.add_argument("--control", type=int, help=argparse.SUPPRESS)  # the file descriptor of the control socket
    parser.add_argument("--compressors", default="zlib", help="the names of compressors, separated by commas")
    return parser


def _receive_deployment(channel: Channel | None) -> Deployment | None:
    """Return the deployment of the plan that the parent process sends, or None without a plan."""
    from gmongo.testing.plan import create_from_message

    message = channel.receive() if channel is not None else None
    return create_from_message(message["plan"]) if message and message["plan"] else None


def _create_deployment(options: argparse.Namespace) -> Deployment:
    from gmongo.testing.deployment import Deployment

    settings = {
        "version": options.version,
        "port": options.port,
        "users": _parse_users(options.user),
        "tls": options.tls,
        "compressors": [name for name in options.compressors.split(",") if name],
        "parameters": dict(map(_parse_parameter, options.parameter)),
        "log": options.control is not None,
    }
    if options.replica_set is not None:
        return Deployment.replica_set(
            options.replica_set,
            options.name,
            arbiters=options.arbiters,
            election_delay=options.election_delay,
            **settings,
        )
    if options.sharded is not None:
        return Deployment.sharded(options.sharded, **settings)
    if options.load_balanced is not None:
        return Deployment.load_balanced(options.load_balanced, **settings)
    return Deployment.standalone(**settings)


def _create_replica_set(options: argparse.Namespace, get_default: Callable[[str], Any]) -> EmbeddedReplicaSet:
    for name in ("arbiters", "election_delay", "version", "compressors", "control"):
        if getattr(options, name) != get_default(name):
            raise ValueError(f"--mongod cannot be combined with --{name.replace('_', '-')}")
    users, parameters = _parse_users(options.user), dict(map(_parse_parameter, options.parameter))
    settings = {"port": options.port, "tls": options.tls, "users": users or {}, "parameters": parameters}
    return EmbeddedReplicaSet(options.mongod, name=options.name, **settings)


def _parse_users(arguments: Sequence[str] | None) -> dict[str, str] | None:
    if arguments is None:
        return None
    users = {}
    for argument in arguments:
        name, colon, password = argument.partition(":")
        if not (name and colon and password):
            raise ValueError(f"--user {argument!r} is not NAME:PASSWORD")
        users[name] = password
    return users


def _parse_parameter(argument: str) -> tuple[str, Any]:
    name, equals, value = argument.partition("=")
    if not equals:
        raise ValueError(f"--parameter {argument!r} is not NAME=JSON")
    try:
        return name, json.loads(value)
    except ValueError:
        raise ValueError(f"--parameter {argument!r} has a value that is not JSON") from None


def _watch_input(end_event: Event) -> None:
    """If standard input is a pipe, wait until the pipe's other end is closed, and set `end_event`."""
    try:
        if not stat.S_ISFIFO(os.fstat(0).st_mode):
            return
        gevent_os.make_nonblocking(0)
        while gevent_os.nb_read(0, 1024):
            pass
    except OSError:
        return
    end_event.set()


if __name__ == "__main__":
    sys.exit(main())

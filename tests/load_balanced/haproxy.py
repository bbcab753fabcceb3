"""Start the load balancer HAProxy on the loopback interface."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gevent import socket as gsocket

from gmongo.testing.simulation.listener import reserve
from tests.support.wait import eventually

# Debian installs HAProxy in /usr/sbin, which the PATH of some users lacks.
HAPROXY_PATH = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")

_CONFIGURATION = """
global
    maxconn 500

defaults
    mode tcp
    timeout connect 1s
    timeout client 30s
    timeout server 30s
    retries 2
    option redispatch

frontend mongodb
    bind 127.0.0.1:{port}
    default_backend services

backend services
    balance roundrobin
{servers}
"""


@contextmanager
def run_haproxy(services: list[str], folder: Path) -> Iterator[str]:
    """Start HAProxy with the PROXY protocol, and yield the address of HAProxy.

    :param services: the address of each service as ``host:port``.
    :param folder: the folder in which the function writes the configuration file of HAProxy.
    """
    # Until HAProxy starts, the reservation keeps other programs from the port.
    with reserve(0) as reservation:
        port = reservation.getsockname()[1]
        with _run_process(port, services, folder):
            yield f"127.0.0.1:{port}"


@contextmanager
def _run_process(port: int, services: list[str], folder: Path) -> Iterator[None]:
    servers = "\n".join(
        f"    server service{number} {address} send-proxy-v2 check inter 100ms fall 1 rise 1"
        for number, address in enumerate(services)
    )
    file = folder / "haproxy.cfg"
    file.write_text(_CONFIGURATION.format(port=port, servers=servers))
    assert HAPROXY_PATH is not None
    output_options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([HAPROXY_PATH, "-db", "-f", str(file)], **output_options) as process:
        try:
            eventually(lambda: process.poll() is not None or _is_listening(port))
            assert process.poll() is None, "HAProxy did not start"
            yield
        finally:
            process.terminate()


def _is_listening(port: int) -> bool:
    try:
        gsocket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True

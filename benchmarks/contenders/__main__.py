"""The contenders of Python: ``python -m benchmarks.contenders NAME URI SOCKET CALLERS FILE``.

What they are asked, and what they answer, is said in :mod:`benchmarks.programs`. They know the documents, so that
they do not read the file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from benchmarks.worker import prepare

CALLERS_ON = {"gmongo": "greenlets", "floor": "greenlets", "pymongo": "threads", "threads": "threads"}


def serve(stream: Any, operations: list[Callable[[], Any]]) -> None:
    """One caller: run what is asked for, until the end."""
    while request := stream.recv(4):
        wanted = int.from_bytes(request, "big")
        operation, found = operations[wanted >> 24], 0
        for _ in range(wanted & 0xFFFFFF):
            found += _count(operation())
        stream.sendall(found.to_bytes(4, "big"))


def _count(result: Any) -> int:
    """How many documents a result is of."""
    return result if result.__class__ is int else int(result is not None)


def in_greenlets(name: str, uri: str, path: str, callers: int) -> None:
    """gmongo or the floor, which nothing is patched for."""
    import gevent
    from gevent import socket

    def call() -> None:
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(path)
        serve(stream, operations)

    operations = _of_floor(uri, callers) if name == "floor" else _of_driver(name, uri)
    gevent.joinall([gevent.spawn(call) for _ in range(callers)], raise_error=True)


def in_threads(name: str, uri: str, path: str, callers: int) -> None:
    """PyMongo in threads, which are greenlets if the process is patched."""
    import socket
    import threading

    def call() -> None:
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(path)
        serve(stream, operations)

    operations = _of_driver("pymongo", uri)
    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _of_driver(package: str, uri: str) -> list[Callable[[], Any]]:
    import importlib

    from benchmarks.programs import KINDS
    from benchmarks.real.of_drivers import blocking
    from benchmarks.workloads import driver_operations

    client = importlib.import_module(package).MongoClient(uri)
    operations = {**driver_operations(client), **blocking(package, client)}
    return [operations[kind] for kind in KINDS]


def _of_floor(uri: str, callers: int) -> list[Callable[[], Any]]:
    from benchmarks.floor import Floor, operations
    from benchmarks.programs import KINDS
    from benchmarks.worker import POOL_SIZE

    found = operations(Floor(int(uri.partition("/?")[0].rpartition(":")[2]), min(callers, POOL_SIZE)))
    return [found[kind] for kind in KINDS if kind in found]


def in_tasks(name: str, uri: str, path: str, callers: int) -> None:
    """AsyncMongoClient in tasks of asyncio's loop or of uvloop's."""
    import asyncio
    import socket

    from benchmarks.contenders.tasks import operations

    async def call(run: list[Callable[[], Any]]) -> None:
        loop = asyncio.get_running_loop()
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(path)
        stream.setblocking(False)
        while request := await loop.sock_recv(stream, 4):
            wanted = int.from_bytes(request, "big")
            operation, found = run[wanted >> 24], 0
            for _ in range(wanted & 0xFFFFFF):
                found += _count(await operation())
            await loop.sock_sendall(stream, found.to_bytes(4, "big"))

    async def main() -> None:
        run = operations(uri)
        await asyncio.gather(*(call(run) for _ in range(callers)))

    if name == "uvloop":
        import uvloop

        uvloop.run(main())
    else:
        asyncio.run(main())


def main() -> None:
    name, uri, path, callers, _file = sys.argv[1:]
    prepare(name)
    run = {"greenlets": in_greenlets, "threads": in_threads}.get(CALLERS_ON.get(name, ""), in_tasks)
    run(name, uri, path, int(callers))


if __name__ == "__main__":
    main()

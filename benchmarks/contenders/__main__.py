"""The contenders in Python: ``python -m benchmarks.contenders NAME URI SOCKET CALLERS FILE``.

:mod:`benchmarks.programs` describes the requests and answers of a contender. FILE contains the
documents for programs in languages other than Python. Contenders in Python import the documents.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from benchmarks.worker import patch_if_pymongo

CALLER_KINDS = {"gmongo": "greenlets", "floor": "greenlets", "pymongo": "threads", "threads": "threads"}


def serve(stream: Any, operations: list[Callable[[], Any]]) -> None:
    """Read requests from a stream until its end, and run the operation of each request."""
    while request := stream.recv(4):
        code = int.from_bytes(request, "big")
        operation, document_count = operations[code >> 24], 0
        for _ in range(code & 0xFFFFFF):
            document_count += _count_documents(operation())
        stream.sendall(document_count.to_bytes(4, "big"))


def _count_documents(result: Any) -> int:
    return result if result.__class__ is int else int(result is not None)


def run_in_greenlets(name: str, uri: str, socket_path: str, caller_count: int) -> None:
    """Run gmongo or the baseline in greenlets, without monkey-patching."""
    import gevent
    from gevent import socket

    def call() -> None:
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(socket_path)
        serve(stream, operations)

    operations = _baseline_operations(uri, caller_count) if name == "floor" else _driver_operations(name, uri)
    gevent.joinall([gevent.spawn(call) for _ in range(caller_count)], raise_error=True)


def run_in_threads(name: str, uri: str, socket_path: str, caller_count: int) -> None:
    """Run PyMongo in threads, which are greenlets in a monkey-patched process."""
    import socket
    import threading

    def call() -> None:
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(socket_path)
        serve(stream, operations)

    operations = _driver_operations("pymongo", uri)
    threads = [threading.Thread(target=call) for _ in range(caller_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _driver_operations(package: str, uri: str) -> list[Callable[[], Any]]:
    import importlib

    from benchmarks.programs import DOCUMENT_COUNTS
    from benchmarks.real.driver_operations import blocking_operations
    from benchmarks.workloads import driver_operations

    client = importlib.import_module(package).MongoClient(uri)
    operations = {**driver_operations(client), **blocking_operations(package, uri, client)}
    return [operations[kind] for kind in DOCUMENT_COUNTS]


def _baseline_operations(uri: str, caller_count: int) -> list[Callable[[], Any]]:
    from benchmarks.baseline import Baseline, operations
    from benchmarks.programs import DOCUMENT_COUNTS
    from benchmarks.worker import POOL_SIZE

    by_kind = operations(Baseline(int(uri.partition("/?")[0].rpartition(":")[2]), min(caller_count, POOL_SIZE)))
    return [by_kind[kind] for kind in DOCUMENT_COUNTS if kind in by_kind]


def run_in_tasks(name: str, uri: str, socket_path: str, caller_count: int) -> None:
    """Run AsyncMongoClient in tasks of asyncio or uvloop."""
    import asyncio
    import socket

    from benchmarks.contenders.tasks import operations

    async def call(functions: list[Callable[[], Any]]) -> None:
        loop = asyncio.get_running_loop()
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(socket_path)
        stream.setblocking(False)
        while request := await loop.sock_recv(stream, 4):
            code = int.from_bytes(request, "big")
            operation, document_count = functions[code >> 24], 0
            for _ in range(code & 0xFFFFFF):
                document_count += _count_documents(await operation())
            await loop.sock_sendall(stream, document_count.to_bytes(4, "big"))

    async def main() -> None:
        functions = operations(uri)
        await asyncio.gather(*(call(functions) for _ in range(caller_count)))

    if name == "uvloop":
        import uvloop

        uvloop.run(main())
    else:
        asyncio.run(main())


def main() -> None:
    """Run the contender that the command line names."""
    name, uri, socket_path, caller_count, _file = sys.argv[1:]
    patch_if_pymongo(name)
    run = {"greenlets": run_in_greenlets, "threads": run_in_threads}.get(CALLER_KINDS.get(name, ""), run_in_tasks)
    run(name, uri, socket_path, int(caller_count))


if __name__ == "__main__":
    main()

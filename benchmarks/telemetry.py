"""CPU time of telemetry: ``python -m benchmarks.telemetry``.

The benchmark measures the CPU time of ``find_one`` on the canned server. The benchmark compares a
client without observers (telemetry), a traced client without a tracer provider, and clients with
observers. In one variant, handwritten spans surround the calls of the client without observers. The
handwritten spans have the attributes of the driver's spans. The result of a variant is its fastest
round.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind

from benchmarks.processes import canned_server
from benchmarks.replies import ONE
from gmongo import MongoClient

OPERATION_COUNT = 1000
#: Variant → the variant that is the denominator of its ratio, or an empty string for no ratio.
DENOMINATORS = {
    "without observers": "",
    "traced, no provider": "without observers",
    "handwritten spans": "without observers",
    "traced": "handwritten spans",
    "metrics": "without observers",
    "slow operations": "without observers",
    "traces, metrics, slow operations": "handwritten spans",
}


def make_find_in_handwritten_spans(tracer: Any, collection: Any, address: tuple[str, int]) -> Callable[[], Any]:
    """Return a function that runs ``find_one`` in handwritten spans."""
    host, port = address
    target = {"db.system.name": "mongodb", "db.namespace": "bench", "db.collection.name": ONE}
    operation = {**target, "db.operation.name": "find", "db.operation.summary": f"find bench.{ONE}"}
    command = {**target, "db.command.name": "find", "db.query.summary": f"find bench.{ONE}", "network.transport": "tcp"}
    command = {**command, "server.address": host, "server.port": port, "db.mongodb.lsid": "x" * 36}
    command = {**command, "db.mongodb.driver_connection_id": 1, "db.mongodb.server_connection_id": 1}

    def find() -> Any:
        with (
            tracer.start_as_current_span(f"find bench.{ONE}", kind=SpanKind.CLIENT, attributes=dict(operation)),
            tracer.start_as_current_span("find", kind=SpanKind.CLIENT, attributes=dict(command)),
        ):
            return collection.find_one({"_id": 1})

    return find


def variants(uri: str) -> tuple[dict[str, Callable[[], Any]], list[MongoClient[Any]]]:
    """Return the measured functions by variant, and the clients, which the caller must close."""
    tracer_provider, meter_provider = TracerProvider(shutdown_on_exit=False), MeterProvider(shutdown_on_exit=False)
    tracing = {"enabled": True, "tracer_provider": tracer_provider}
    metrics = {"enabled": True, "meter_provider": meter_provider}
    options: dict[str, dict[str, Any]] = {
        "without observers": {},
        "traced, no provider": {"tracing": {"enabled": True}},
        "traced": {"tracing": tracing},
        "metrics": {"metrics": metrics},
        "slow operations": {"slow_operation_ms": 60_000},
        "traces, metrics, slow operations": {"tracing": tracing, "metrics": metrics, "slow_operation_ms": 60_000},
    }
    clients = {name: MongoClient[Any](uri, **each) for name, each in options.items()}
    functions = {name: _find_one(client) for name, client in clients.items()}
    plain = clients["without observers"]
    plain.bench[ONE].find_one()
    assert plain.address is not None
    tracer = tracer_provider.get_tracer("application")
    functions["handwritten spans"] = make_find_in_handwritten_spans(tracer, plain.bench[ONE], plain.address)
    return {name: functions[name] for name in DENOMINATORS}, list(clients.values())


def _find_one(client: MongoClient[Any]) -> Callable[[], Any]:
    collection = client.bench[ONE]
    return lambda: collection.find_one({"_id": 1})


def measure(round_count: int) -> dict[str, float]:
    """Return the CPU time of one operation in microseconds, by variant."""
    with canned_server() as port:
        functions, clients = variants(f"mongodb://127.0.0.1:{port}/")
        fastest = dict.fromkeys(functions, float("inf"))
        for _ in range(round_count):
            for name, find in functions.items():
                started = time.process_time()
                for _ in range(OPERATION_COUNT):
                    find()
                fastest[name] = min(fastest[name], (time.process_time() - started) / OPERATION_COUNT)
        for client in clients:
            client.close()
    return {name: seconds * 1e6 for name, seconds in fastest.items()}


def table(measured: dict[str, float]) -> str:
    """Return the measurement as a Markdown table."""
    lines = ["| `find_one` | CPU | |", "|---|---:|---|"]
    for name, microseconds in measured.items():
        denominator = DENOMINATORS[name]
        ratio = f"{microseconds / measured[denominator]:.2f} times {denominator}" if denominator else ""
        lines.append(f"| {name} | {microseconds:.1f} µs | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    """Measure the CPU time of all variants, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help=f"rounds of {OPERATION_COUNT} operations (default: 15)")
    print(table(measure(parser.parse_args().rounds)))


if __name__ == "__main__":
    main()

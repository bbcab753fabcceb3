"""Load test of a gunicorn web application that stores documents with gmongo.

``python -m examples.main_job`` starts the application and simulates visitors, which post notes and
read the notes again. At the end, the program prints the results. The exit status is 1 if a request
failed or a document is missing. The program uses the server of MONGODB_URI. Without this variable,
the program starts an installed `mongod`, or nx-27017.
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from time import perf_counter
from typing import Any, NamedTuple

import gevent
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.visitors import Visit, percentile, run_visits
from examples.web_server import ServerOptions, WebServerError, serve, worker_healths
from gmongo import ASCENDING, MongoClient
from gmongo.errors import PyMongoError
from gmongo.testing import URI_VARIABLE, EmbeddedDatabaseError, database_uri
from gmongo.testing.embedded import default_engine


class Result(NamedTuple):
    """Results of a run."""

    visits: list[Visit]
    seconds: float
    worker_healths: list[dict[str, Any]]
    document_count: int

    @property
    def latencies(self) -> list[float]:
        """The latencies of all requests in seconds."""
        return [latency for visit in self.visits for latency in visit.latencies]

    @property
    def failures(self) -> list[str]:
        """The error texts of the failed visits."""
        return [visit.failure for visit in self.visits if visit.failure is not None]

    @property
    def posted_count(self) -> int:
        """The number of notes for which the application returned status 201."""
        return sum(visit.is_stored for visit in self.visits)

    @property
    def is_good(self) -> bool:
        """True if all requests succeeded, and the collection has a document for each visit."""
        return not self.failures and self.document_count == self.posted_count == len(self.visits)


def main() -> int:
    """Run the main job with the options of the command line, and return the exit status."""
    arguments = parse_arguments()
    console = Console()
    limit = gevent.Timeout(arguments.time_limit)
    try:
        with limit:
            result = run(arguments, console)
    except gevent.Timeout as timeout:
        if timeout is not limit:
            raise
        console.print(f"[red]not finished after {arguments.time_limit:g} seconds")
        return 1
    except KeyboardInterrupt:
        console.print("[red]interrupted")
        return 130
    except (EmbeddedDatabaseError, WebServerError, PyMongoError) as error:
        console.print(f"{type(error).__name__}: {error}", style="red", markup=False)
        return 1
    print_report(result, arguments, console)
    return 0 if result.is_good else 1


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Simulate visitors of a web application that uses gmongo.")
    parser.add_argument("--requests", type=positive_integer, default=400, help="HTTP requests, half of them POST (400)")
    parser.add_argument("--concurrency", type=positive_integer, default=50, help="number of concurrent visitors (50)")
    parser.add_argument("--server", choices=["gunicorn", "pywsgi"], default="gunicorn", help="web server (gunicorn)")
    parser.add_argument("--workers", type=positive_integer, default=2, help="workers of gunicorn (2)")
    parser.add_argument("--preload", action="store_true", help="create the client before gunicorn forks its workers")
    parser.add_argument("--time-limit", type=float, default=120.0, help="maximum number of seconds (120)")
    return parser.parse_args()


def positive_integer(text: str) -> int:
    """Parse an integer that is at least 1."""
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def run(arguments: argparse.Namespace, console: Console) -> Result:
    """Start the servers, run the visits, stop the servers, and return the results."""
    worker_count = arguments.workers if arguments.server == "gunicorn" else 1
    server_options = ServerOptions(arguments.server, worker_count, arguments.preload)
    topic = f"main job {uuid.uuid4().hex}"
    client: MongoClient[dict[str, Any]]
    source = URI_VARIABLE if os.environ.get(URI_VARIABLE) else default_engine()
    with database_uri() as uri, MongoClient(uri, serverSelectionTimeoutMS=5000) as client:
        notes = client.get_default_database("gmongo_examples").notes
        version = client.server_info().get("version", "unknown")  # nx-27017 reports no version
        console.print(f"database: {source}, version {version}, {uri}", markup=False, highlight=False)
        notes.create_index([("topic", ASCENDING)])
        with serve(server_options, uri) as port:
            console.print(f"web server: {server_options.describe()}, on port {port}")
            start = perf_counter()
            visits = visit(port, topic, arguments, console)
            seconds = perf_counter() - start
            healths = worker_healths(port, server_options.worker_count)
        document_count = notes.count_documents({"topic": topic})
        notes.delete_many({"topic": topic})
        return Result(visits, seconds, healths, document_count)


def visit(port: int, topic: str, arguments: argparse.Namespace, console: Console) -> list[Visit]:
    """Run the visits, show the progress, and return the result of each visit."""
    visit_count = (arguments.requests + 1) // 2
    columns = TextColumn("requests"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("requests", total=2 * visit_count)
        return run_visits(
            port, topic, visit_count, arguments.concurrency, lambda requests: progress.advance(task, requests)
        )


def print_report(result: Result, arguments: argparse.Namespace, console: Console) -> None:
    """Print the table of the results, and the first five failures."""
    table = Table(title=f"{arguments.concurrency} concurrent visitors", show_header=False)
    for name, value in table_rows(result).items():
        table.add_row(name, value)
    console.print(table)
    for failure in result.failures[:5]:
        console.print(failure, style="red", markup=False)
    console.print("[green]all is well" if result.is_good else "[red]something is wrong")


def table_rows(result: Result) -> dict[str, str]:
    """Return a mapping from the name of each table row to its value."""
    latencies = result.latencies
    percentile_texts = [f"{name} {percentile(latencies, percent) * 1000:.1f}" for name, percent in PERCENTILES.items()]
    return {
        "requests": str(len(latencies)),
        "failures": str(len(result.failures)),
        "throughput": f"{len(latencies) / result.seconds:.0f} requests/s",
        "latency in ms": "  ".join(percentile_texts),
        "connections used": "\n".join(map(connections_text, result.worker_healths)),
        "documents stored": f"{result.document_count} of {result.posted_count} posted",
    }


PERCENTILES = {"p50": 50, "p95": 95, "p99": 99, "max": 100}


def connections_text(health: dict[str, Any]) -> str:
    """Return a text with the number of connections of one worker."""
    patched = "patched" if health["patched"] else "not patched"
    total = sum(pool["total"] for pool in health["pools"])
    return f"{total} by process {health['process']} ({patched})"


if __name__ == "__main__":
    sys.exit(main())

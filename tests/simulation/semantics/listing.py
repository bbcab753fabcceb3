"""The cases, asked of a server; and random calls, asked of a server and of the simulation."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import random
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gmongo import MongoClient
from gmongo.testing import Deployment

from .cases import Case, Error, answer, same
from .generator import Call, documents, random_call, run

CASES: list[Case] = [
    case
    for path in sorted(Path(__file__).parent.glob("*_cases.py"))
    for case in importlib.import_module(f"{__package__}.{path.stem}").CASES
]
REFUSED = Error(115)


@contextlib.contextmanager
def simulation() -> Iterator[Any]:
    """A database of a simulated deployment."""
    with Deployment.replica_set(members=1, log=False) as deployment, MongoClient(deployment.uri) as client:
        yield client.gmongo_semantics


@contextlib.contextmanager
def asked() -> Iterator[Any]:
    """A new database of the server of ``MONGODB_URI``, or else of a simulated deployment."""
    uri = os.environ.get("MONGODB_URI")
    if uri is None:
        with simulation() as database:
            yield database
        return
    with MongoClient(uri) as client:
        name = f"gmongo_semantics_{uuid.uuid4().hex[:12]}"
        try:
            yield client[name]
        finally:
            client.drop_database(name)


def differing_cases(database: Any) -> Iterator[tuple[Case, Any]]:
    """The cases that a server answers otherwise, with its answers."""
    for case in CASES:
        found = answer(case, database)
        if not same(found, case.expected):
            yield case, found


def differing_calls(left: Any, right: Any, count: int, seed: int) -> Iterator[tuple[Call, Any, Any]]:
    """The random calls that two databases answer differently; what one of them refuses does not count."""
    chance = random.Random(seed)
    for _ in range(count):
        stored, call = documents(chance), random_call(chance)
        found = [run(database, stored, call) for database in (left, right)]
        if REFUSED not in found and not same(found[0], found[1]):
            yield call, found[0], found[1]


def main(arguments: Sequence[str]) -> int:
    """List the differences; 1 if there are some."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.semantics", description=__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="random calls, if MONGODB_URI names a server")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    differences = 0
    with asked() as database:
        for case, found in differing_cases(database):
            differences += 1
            print(f"{case.name}\n    answered   {found!r}\n    documented {case.expected!r} ({case.source})")
        if "MONGODB_URI" in os.environ:
            with simulation() as simulated:
                for call, here, there in differing_calls(simulated, database, options.calls, options.seed):
                    differences += 1
                    print(f"{call}\n    simulation {here!r}\n    server     {there!r}")
    print(f"{len(CASES)} cases, {differences} differences")
    return int(differences > 0)

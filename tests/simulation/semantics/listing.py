"""The cases, asked of a server; and random calls, asked of a server and of the simulation."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from gmongo import MongoClient
from gmongo.testing import Deployment

from . import (
    administration_cases,
    array_cases,
    batch_cases,
    catalog_cases,
    change_cases,
    collation_cases,
    command_cases,
    computation_cases,
    conversion_cases,
    creation_cases,
    date_cases,
    definition_cases,
    example_collection_cases,
    example_date_cases,
    example_expression_cases,
    example_filter_cases,
    example_index_cases,
    example_projection_cases,
    example_stage_cases,
    example_stream_cases,
    example_update_cases,
    example_validator_cases,
    example_window_cases,
    example_write_cases,
    filter_cases,
    find_cases,
    gap_cases,
    grouped_cases,
    index_cases,
    modify_cases,
    number_cases,
    object_cases,
    operand_cases,
    operator_cases,
    option_cases,
    pipeline_cases,
    pipeline_stage_cases,
    plan_cases,
    position_cases,
    query_cases,
    reply_cases,
    schema_cases,
    set_cases,
    shown_cases,
    stage_cases,
    storage_cases,
    stream_cases,
    string_cases,
    transaction_cases,
    update_cases,
    validator_cases,
    window_cases,
    write_cases,
)
from .cases import Case, Error, answer, same
from .generator import Call, documents, random_call, run

CASES: list[Case] = [
    *query_cases.CASES,
    *update_cases.CASES,
    *number_cases.CASES,
    *string_cases.CASES,
    *array_cases.CASES,
    *object_cases.CASES,
    *date_cases.CASES,
    *stage_cases.CASES,
    *command_cases.CASES,
    *collation_cases.CASES,
    *window_cases.CASES,
    *gap_cases.CASES,
    *catalog_cases.CASES,
    *index_cases.CASES,
    *schema_cases.CASES,
    *write_cases.CASES,
    *pipeline_cases.CASES,
    *conversion_cases.CASES,
    *reply_cases.CASES,
    *operand_cases.CASES,
    *option_cases.CASES,
    *position_cases.CASES,
    *filter_cases.CASES,
    *shown_cases.CASES,
    *change_cases.CASES,
    *modify_cases.CASES,
    *creation_cases.CASES,
    *validator_cases.CASES,
    *pipeline_stage_cases.CASES,
    *plan_cases.CASES,
    *computation_cases.CASES,
    *transaction_cases.CASES,
    *administration_cases.CASES,
    *find_cases.CASES,
    *set_cases.CASES,
    *batch_cases.CASES,
    *definition_cases.CASES,
    *grouped_cases.CASES,
    *operator_cases.CASES,
    *stream_cases.CASES,
    *storage_cases.CASES,
    *example_filter_cases.CASES,
    *example_projection_cases.CASES,
    *example_update_cases.CASES,
    *example_write_cases.CASES,
    *example_index_cases.CASES,
    *example_collection_cases.CASES,
    *example_validator_cases.CASES,
    *example_stage_cases.CASES,
    *example_window_cases.CASES,
    *example_date_cases.CASES,
    *example_expression_cases.CASES,
    *example_stream_cases.CASES,
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

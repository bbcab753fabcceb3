"""The server that is a way off, and what is said of clients that read from it."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from benchmarks.far_server import BATCH_SIZE, BATCHES, COLLECTION, DATABASE
from benchmarks.long_reads import JUDGED, Line, Reading, far_server, show
from gmongo.wire.message import EXHAUST_ALLOWED
from tests.simulation.servers.wire_client import WireClient

pytestmark = pytest.mark.long


def test_the_batches_of_a_stream_come_one_right_after_the_other() -> None:
    with far_server(30.0) as port, WireClient(f"127.0.0.1:{port}") as client:
        began = time.monotonic()
        cursor = client.run({"find": COLLECTION, "batchSize": BATCH_SIZE}, DATABASE)["cursor"]
        assert time.monotonic() - began >= 0.03
        client.send({"getMore": cursor["id"], "collection": COLLECTION}, DATABASE, flags=EXHAUST_ALLOWED)
        replies = [client.receive() for _ in range(BATCHES - 1)]
    assert len(cursor["firstBatch"]) == BATCH_SIZE
    assert {len(reply["cursor"]["nextBatch"]) for reply, _more in replies} == {BATCH_SIZE}
    assert [more for _reply, more in replies] == [True] * (BATCHES - 2) + [False]
    assert replies[-1][0]["cursor"]["id"] == 0


def test_without_a_stream_each_batch_is_asked_for() -> None:
    with far_server(0.0) as port, WireClient(f"127.0.0.1:{port}") as client:
        cursor = client.run({"find": COLLECTION}, DATABASE)["cursor"]
        ids = [client.run({"getMore": cursor["id"], "collection": COLLECTION}, DATABASE)["cursor"]["id"] for _ in "ab"]
    assert ids == [cursor["id"]] * 2


@pytest.mark.parametrize(("batch", "reached"), [(8.0, True), (9.0, True), (9.5, False)])
def test_the_target_is_that_of_the_middle_batch(batch: float, reached: bool) -> None:
    base, own = [Reading(1.5, 15.0)] * 3, [Reading(5.0, batch)] * 3
    lines = [Line(5.0, "waits", "gmongo", base, base), Line(5.0, "waits", JUDGED, own, base)]
    output = io.StringIO()
    assert show(lines, Console(file=output, width=120)) is reached
    assert f"{batch / 15:.2f}" in output.getvalue()

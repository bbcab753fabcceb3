"""Tests that long commands of a simulated store let other greenlets run.

The tests count the function calls between two pauses, and run other commands while a long command
pauses.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from gmongo.testing.command import CommandError
from gmongo.testing.store import pacing
from gmongo.testing.store.pacing import Pace

from .shell import Shell, replica_set, standalone

MANY = 1500


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every command pause after every fourth item."""
    monkeypatch.setattr(pacing, "_LONGEST_SLICE", -1.0)
    monkeypatch.setattr(pacing, "_ITEMS_PER_CHECK", 4)


DOCUMENTS = [{"_id": n, "k": n * 7919 % MANY, "g": n % 10, "s": f"t{n % 1000}", "a": [1]} for n in range(MANY)]


def fill(shell: Shell) -> Shell:
    shell("insert", "c", documents=DOCUMENTS)
    return shell


class CallCounter:
    """Counter of function calls. :meth:`count` returns the maximum of calls between two pauses.

    A command that never pauses makes at least `MANY` calls.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.maximum = self._count = 0
        pause = Pace.pause

        def pause_and_reset(pace: Pace) -> None:
            self._keep_maximum()
            pause(pace)
            self._count = 0

        monkeypatch.setattr(Pace, "pause", pause_and_reset)

    def _keep_maximum(self) -> None:
        self.maximum = max(self.maximum, self._count)

    def _count_call(self, _frame: Any, event: str, _argument: Any) -> None:
        self._count += event in ("call", "c_call")

    def count(self, run: Callable[[], Any]) -> int:
        self.maximum = self._count = 0
        sys.setprofile(self._count_call)
        try:
            run()
        finally:
            sys.setprofile(None)
        self._keep_maximum()
        return self.maximum


def group_stage(**accumulators: Any) -> dict[str, Any]:
    return {"$group": {"_id": None, **accumulators}}


PIPELINES = {
    "match": [{"$match": {"s": "x"}}],
    "project": [{"$project": {"k": {"$add": ["$k", 1]}}}, {"$match": {"k": -1}}],
    "sort": [{"$sort": {"k": 1}}],
    "sort and limit": [{"$sort": {"k": -1}}, {"$limit": 3}],
    "group of each": [{"$group": {"_id": "$k", "n": {"$sum": 1}}}, {"$match": {"n": 2}}],
    "push": [group_stage(all=({"$push": "$s"})), {"$project": {"n": {"$size": "$all"}}}],
    "addToSet": [group_stage(all=({"$addToSet": "$k"})), {"$project": {"n": {"$size": "$all"}}}],
    "extremes": [group_stage(a={"$min": "$k"}, b={"$max": "$s"})],
    "map": [
        group_stage(a={"$push": "$k"}),
        {"$project": {"n": {"$size": {"$map": {"input": "$a", "in": "$$this"}}}}},
    ],
    "filter": [
        group_stage(a={"$push": "$k"}),
        {"$project": {"n": {"$size": {"$filter": {"input": "$a", "cond": {"$gt": ["$$this", 9]}}}}}},
    ],
    "unwind": [group_stage(a={"$push": "$k"}), {"$unwind": "$a"}, {"$match": {"a": -1}}],
    "sortByCount": [{"$sortByCount": "$k"}, {"$limit": 3}],
    "facet": [{"$facet": {"a": [{"$match": {"k": -1}}], "b": [{"$count": "n"}]}}],
    "unionWith": [{"$unionWith": "c"}, {"$match": {"k": -1}}],
    "lookup": [
        {"$limit": 2},
        {"$lookup": {"from": "c", "localField": "k", "foreignField": "g", "as": "r"}},
    ],
    "out": [{"$out": "d"}],
    "merge": [{"$merge": "d"}],
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", PIPELINES)
def test_aggregation_pauses_between_documents(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = fill(standalone())
    calls = CallCounter(monkeypatch)
    assert calls.count(lambda: shell.aggregate(*PIPELINES[name])) < MANY


def create_capped(shell: Shell) -> Shell:
    shell("create", "p", capped=True, size=1 << 24)
    shell("insert", "p", documents=[{"_id": n} for n in range(MANY)])
    return shell


def create_index(shell: Shell) -> Shell:
    shell("createIndexes", "c", indexes=[{"key": {"k": 1}, "name": "k"}])
    return shell


def create_view(shell: Shell) -> Shell:
    shell("create", "v", viewOn="c", pipeline=[])
    return shell


COMMANDS: dict[str, tuple[Callable[[Shell], Any], Callable[[Shell], Any]]] = {
    "find": (fill, lambda shell: shell.find(filter={"s": "x"})),
    "find all": (fill, lambda shell: shell.find(batchSize=MANY)),
    "find sorted": (fill, lambda shell: shell.find(sort={"k": 1}, batchSize=MANY)),
    "find view": (lambda shell: create_view(fill(shell)), lambda shell: shell.find("v", {"s": 1})),
    "find by a range": (lambda shell: create_index(fill(shell)), lambda shell: shell.find(filter={"k": {"$gte": 0}})),
    "tail": (create_capped, lambda shell: shell.find("p", tailable=True, batchSize=MANY)),
    "count": (fill, lambda shell: shell("count", "c", query={"s": "x"})),
    "distinct": (fill, lambda shell: shell("distinct", "c", key="k")),
    "explain": (lambda shell: create_index(fill(shell)),
                lambda shell: shell("explain", {"find": "c", "filter": {"k": {"$gte": 0}}})),
    "insert": (lambda shell: shell, fill),
    "insert into a capped collection": (create_capped, lambda shell: shell("insert", "p", documents=[{"_id": -1}])),
    "update": (fill, lambda shell: shell.update({}, {"$set": {"z": 1}}, multi=True)),
    "updates": (fill, lambda shell: shell(
        "update", "c", updates=[{"q": {"_id": n}, "u": {"z": 1}} for n in range(MANY)])),
    "bulkWrite": (fill, lambda shell: shell(
        "bulkWrite", 1, "admin", ops=[{"delete": 0, "filter": {"_id": n}} for n in range(MANY)],
        nsInfo=[{"ns": "db.c"}])),
    "sorted update": (fill, lambda shell: shell("findAndModify", "c", sort={"k": 1}, update={"$set": {"z": 1}})),
    "delete": (fill, lambda shell: shell("delete", "c", deletes=[{"q": {}, "limit": 0}])),
    "collStats": (fill, lambda shell: shell("collStats", "c")),
    "dbStats": (fill, lambda shell: shell("dbStats", 1)),
    "listDatabases": (fill, lambda shell: shell("listDatabases", 1, "admin"))
}  # fmt: skip


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", COMMANDS)
def test_command_pauses_between_documents(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, run = COMMANDS[name]
    shell = prepare(standalone())
    calls = CallCounter(monkeypatch)
    assert calls.count(lambda: run(shell)) < MANY


def test_change_stream_pauses_between_events(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = replica_set()
    stream = shell("aggregate", "c", pipeline=[{"$changeStream": {}}], cursor={})["cursor"]["id"]
    fill(shell)
    calls = CallCounter(monkeypatch)
    assert calls.count(lambda: shell("getMore", stream, collection="c", batchSize=MANY)) < MANY


def test_removal_of_expired_documents_pauses_between_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell = standalone()
    index = {"key": {"at": 1}, "name": "ttl", "expireAfterSeconds": 1}
    shell("createIndexes", "c", indexes=[index])
    shell.insert(*({"_id": n, "at": datetime.datetime(2000, 1, 1)} for n in range(MANY)))
    parameters = {
        "transactionLifetimeLimitSeconds": 60,
        "ttlMonitorEnabled": True,
        "ttlMonitorSleepSecs": 0,
    }
    calls = CallCounter(monkeypatch)
    assert calls.count(lambda: shell.store.run_due_work(parameters)) < MANY
    assert shell.find() == []


def test_each_pause_runs_the_event_loop_once() -> None:
    loop = gevent.get_hub().loop
    turns = {loop.iteration for _ in Pace().iterate(range(320))}
    assert len(turns) >= 10


@pytest.mark.parametrize("reverse", [False, True])
def test_sort_is_stable(reverse: bool) -> None:
    items = [(n * 31 % 17, n) for n in range(3000)]
    sorted_items = Pace().sort(items, lambda item: item[0], reverse)
    assert sorted_items == sorted(items, key=lambda item: item[0], reverse=reverse)


def run_with_steps(run: Callable[[], Any], *steps: Callable[[], Any]) -> Any:
    """Call `run`. At each pause of `run`, call the next step in a second greenlet. Return the result
    of `run`.
    """

    def run_steps() -> None:
        for step in steps:
            gevent.sleep(1e-6)
            step()

    other = gevent.spawn(run_steps)
    try:
        return run()
    finally:
        other.get()


def test_range_read_continues_while_index_changes() -> None:
    shell = create_index(fill(standalone()))
    documents = run_with_steps(
        lambda: shell.find(filter={"k": {"$gte": 0}}, batchSize=2 * MANY),
        lambda: shell("delete", "c", deletes=[{"q": {"k": {"$lt": MANY // 2}}, "limit": 0}]),
        lambda: shell.insert({"_id": "new", "k": MANY}),
    )
    stored_ids = {one["_id"] for one in shell.find(batchSize=2 * MANY)}
    assert stored_ids - {"new"} <= {one["_id"] for one in documents} <= stored_ids


def test_second_command_sees_only_old_documents_during_out_stage() -> None:
    shell = fill(standalone())
    shell("insert", "d", documents=[{"_id": "old"}])
    shell("createIndexes", "d", indexes=[{"key": {"k": 1}, "name": "k"}])
    counts: list[int] = []
    run_with_steps(
        lambda: shell.aggregate({"$out": "d"}),
        *[lambda: counts.append(len(shell.find("d")))] * 3,
    )
    assert counts == [1, 1, 1]
    assert shell("count", "d")["n"] == MANY
    assert [one["name"] for one in shell("listIndexes", "d")["cursor"]["firstBatch"]] == ["_id_", "k"]


def test_failed_out_stage_changes_no_collection() -> None:
    shell = fill(standalone())
    shell("insert", "d", documents=[{"_id": "old"}])
    shell("createIndexes", "d", indexes=[{"key": {"g": 1}, "name": "g", "unique": True}])
    with pytest.raises(CommandError) as caught:
        shell.aggregate({"$out": "d"})
    assert caught.value.code == 11000
    assert shell.find("d") == [{"_id": "old"}]
    names = [one["name"] for one in shell("listCollections", 1)["cursor"]["firstBatch"]]
    assert names == ["c", "d"]


def test_second_get_more_on_busy_cursor_fails() -> None:
    shell = fill(standalone())
    cursor = shell("find", "c", batchSize=0)["cursor"]["id"]
    codes: list[int] = []

    def call_get_more() -> None:
        try:
            shell("getMore", cursor, collection="c")
        except CommandError as error:
            codes.append(error.code)

    batch = run_with_steps(lambda: shell("getMore", cursor, collection="c", batchSize=MANY - 1), call_get_more)
    assert codes == [12051] and len(batch["cursor"]["nextBatch"]) == MANY - 1


def test_change_events_during_get_more_are_in_next_batch() -> None:
    shell = fill(replica_set())
    stream = shell("aggregate", "c", pipeline=[{"$changeStream": {}}], cursor={})["cursor"]["id"]
    shell.update({}, {"$set": {"z": 1}}, multi=True)

    def read_batch() -> Iterator[Any]:
        return shell("getMore", stream, collection="c", maxTimeMS=1, batchSize=2 * MANY)["cursor"]["nextBatch"]

    first = run_with_steps(read_batch, lambda: shell.insert({"_id": "late"}))
    assert [one["documentKey"]["_id"] for one in [*first, *read_batch()]] == [*range(MANY), "late"]

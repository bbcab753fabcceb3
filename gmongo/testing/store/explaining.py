"""``explain``, of reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gmongo.testing.command import CommandError, Request, not_supported
from gmongo.testing.store.aggregation import results
from gmongo.testing.store.context import Context
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import bad_value, type_mismatch
from gmongo.testing.store.fields import check_command
from gmongo.testing.store.output import OUTPUTS
from gmongo.testing.store.plan_trees import Node, Query, count_tree, distinct_tree, parsed, write_tree
from gmongo.testing.store.reads import count, distinct, found, matching
from gmongo.testing.store.replies import batch_size
from gmongo.testing.store.updating import Update
from gmongo.testing.store.values import identical, type_name
from gmongo.testing.store.writes import update_of

_VERBOSITIES = ("queryPlanner", "executionStats", "allPlansExecution")


def explain(context: Context) -> Document:
    """``explain``: nothing is written."""
    verbosity = context.body.get("verbosity", "allPlansExecution")
    if verbosity not in _VERBOSITIES:
        raise bad_value(f"verbosity string must be one of {', '.join(_VERBOSITIES)}, not {verbosity!r}")
    command = context.body["explain"]
    if not isinstance(command, dict):
        raise type_mismatch(f"BSON field 'explain.explain' is the wrong type '{type_name(command)}', expected type "
                            "'object'")  # fmt: skip
    if not command:
        raise CommandError(59, "CommandNotFound", "Explain failed due to unknown command: ")
    return explained(context, command, verbosity)


def explained(context: Context, command: Document, verbosity: str) -> Document:
    """The explanation of a command.

    :raises CommandError: if the command is malformed, or cannot be explained.
    """
    name = "findAndModify" if next(iter(command)) == "findandmodify" else next(iter(command))
    if name not in _TREES:
        raise CommandError(59, "CommandNotFound", f"Explain failed due to unknown command: {name}")
    check_command(name, command, context.state.version)
    body = {**command, name: next(iter(command.values()))}
    request = Request(name, body, context.database, context.request.member, context.request.connection)
    inner = replace(context, request=request)
    return _reply(inner, command, verbosity, _TREES[name](inner))


def _reply(context: Context, command: Document, verbosity: str, tree: Node) -> Document:
    name = "$cmd.aggregate" if context.body[context.request.name] == 1 else context.collection_name
    reply: Document = {
        "explainVersion": "1",
        "queryPlanner": {
            "namespace": f"{context.database}.{name}",
            "parsedQuery": parsed(_query(context.body)),
            "indexFilterSet": False,
            "optimizationTimeMillis": 0,
            "maxIndexedOrSolutionsReached": False,
            "maxIndexedAndSolutionsReached": False,
            "maxScansToExplodeReached": False,
            "prunedSimilarIndexes": False,
            "winningPlan": {"isCached": False, **tree.planned()},
            "rejectedPlans": [],
        },
    }
    if verbosity != "queryPlanner":
        reply["executionStats"] = {
            "executionSuccess": True,
            "nReturned": tree.returned,
            "executionTimeMillis": 0,
            "totalKeysExamined": tree.total("keysExamined"),
            "totalDocsExamined": tree.total("docsExamined"),
            "executionStages": tree.executed(),
        }
        if verbosity == "allPlansExecution":
            reply["executionStats"]["allPlansExecution"] = []
    major, minor = context.state.version
    server = {"host": context.request.member.rpartition(":")[0], "version": f"{major}.{minor}.0"}
    return {**reply, "command": {**command, "$db": context.database}, "serverInfo": server, "serverParameters": {}}


def _query(body: Document) -> Any:
    for name in ("filter", "query"):
        if name in body:
            return body[name] or {}
    pipeline = body.get("pipeline")
    if pipeline and isinstance(pipeline[0], dict) and "$match" in pipeline[0]:
        return pipeline[0]["$match"]
    for name in ("updates", "deletes"):
        if body.get(name):
            return body[name][0]["q"]
    return {}


def _asked(context: Context, **more: Any) -> Query:
    collection = None if context.body[context.request.name] == 1 else context.collection()
    return Query(context, collection, _query(context.body), **more)


def _find(context: Context) -> Node:
    body = context.body
    for name in ("limit", "skip"):
        batch_size(body.get(name), name)
    found(context, context.collection())  # what is wrong in the command is wrong here, too
    return _asked(
        context,
        sort=body.get("sort") or {},
        projection=body.get("projection") or {},
        skip=int(body.get("skip") or 0),
        limit=abs(int(body.get("limit") or 0)),
    ).tree()


def _count(context: Context) -> Node:
    query = _asked(context, skip=int(context.body.get("skip") or 0), limit=abs(int(context.body.get("limit") or 0)))
    return count_tree(query, count(context)["n"])


def _distinct(context: Context) -> Node:
    return distinct_tree(_asked(context), context.body["key"], len(distinct(context)["values"]))


def _aggregate(context: Context) -> Node:
    pipeline = context.body["pipeline"]
    if pipeline and "$changeStream" in pipeline[0]:
        raise not_supported("explaining a change stream")
    writes = bool(pipeline) and bool(OUTPUTS & set(pipeline[-1]))
    tree = _asked(context).scan()
    tree.returned = len(results(context, pipeline[:-1] if writes else pipeline))
    return tree


def _update(context: Context) -> Node:
    (statement, *others) = context.body["updates"]
    if others:
        raise bad_value("explained write batches must be of size 1")
    update = update_of(statement, statement["u"], statement["q"], context.variables, context.collection())
    matched, modified = _would(context, update, multi=bool(statement.get("multi")))
    counters = {
        "nMatched": matched,
        "nWouldModify": modified,
        "nWouldUpsert": int(not matched and bool(statement.get("upsert"))),
    }
    return write_tree("UPDATE", counters, 0, _asked(context, limit=int(not statement.get("multi"))))


def _delete(context: Context) -> Node:
    (statement, *others) = context.body["deletes"]
    if others:
        raise bad_value("explained write batches must be of size 1")
    many = not statement.get("limit")
    matched = len(_matched(context))
    stage = "BATCHED_DELETE" if many and context.state.version >= (6, 1) else "DELETE"
    counters = {"nWouldDelete": matched if many else min(1, matched)}
    return write_tree(stage, counters, 0, _asked(context, limit=int(not many)))


def _find_and_modify(context: Context) -> Node:
    body, query = context.body, _asked(context, sort=context.body.get("sort") or {}, limit=1)
    if body.get("remove"):
        deleted = min(1, len(_matched(context)))
        tree = write_tree("DELETE", {"nWouldDelete": deleted}, deleted, query)
    else:
        update = update_of(body, body["update"], body.get("query") or {}, context.variables, context.collection())
        matched, modified = _would(context, update, multi=False)
        upserted = int(not matched and bool(body.get("upsert")))
        counters = {"nMatched": matched, "nWouldModify": modified, "nWouldUpsert": upserted}
        tree = write_tree("UPDATE", counters, matched or int(bool(upserted and body.get("new"))), query)
    fields = body.get("fields")
    return Node("PROJECTION_DEFAULT", {"transformBy": fields}, tree.returned, inner=tree) if fields else tree


def _matched(context: Context) -> list[Document]:
    collection = context.collection()
    records = matching(context, collection, _query(context.body), context.collation(collection))
    return [record.document for _, record in records]


def _would(context: Context, update: Update, *, multi: bool) -> tuple[int, int]:
    """How many documents an update matches, and changes."""
    documents = _matched(context)[: None if multi else 1]
    return len(documents), sum(not identical(update.apply(one), one) for one in documents)


_TREES: Mapping[str, Callable[[Context], Node]] = {
    "aggregate": _aggregate,
    "count": _count,
    "delete": _delete,
    "distinct": _distinct,
    "find": _find,
    "findAndModify": _find_and_modify,
    "update": _update,
}

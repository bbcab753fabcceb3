"""``explain``, of reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gmongo.testing.command import CommandError, Request, not_supported
from gmongo.testing.store.aggregation import results
from gmongo.testing.store.context import Context
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.fields import check_command
from gmongo.testing.store.output import OUTPUTS
from gmongo.testing.store.planning import plan_of
from gmongo.testing.store.reads import matching, used_index
from gmongo.testing.store.writes import update_of

_VERBOSITIES = ("queryPlanner", "executionStats", "allPlansExecution")


def explain(context: Context) -> Document:
    """``explain``: nothing is written."""
    verbosity = context.body.get("verbosity", "allPlansExecution")
    if verbosity not in _VERBOSITIES:
        raise bad_value(f"verbosity string must be one of {', '.join(_VERBOSITIES)}, not {verbosity!r}")
    command = context.body["explain"]
    if not isinstance(command, dict) or not command:
        raise CommandError(9, "FailedToParse", "explain needs a command to explain")
    return explained(context, command, verbosity)


def explained(context: Context, command: Document, verbosity: str) -> Document:
    """The explanation of a command.

    :raises CommandError: if the command is malformed, or cannot be explained.
    """
    name = "findAndModify" if next(iter(command)) == "findandmodify" else next(iter(command))
    if name not in _QUERIES:
        raise CommandError(59, "CommandNotFound", f"Explain failed due to unknown command: {name}")
    check_command(name, command, context.state.version)
    body = {**command, name: next(iter(command.values()))}
    request = Request(name, body, context.database, context.request.member, context.request.connection)
    inner = replace(context, request=request)
    count = _QUERIES[name](inner)
    return _reply(inner, command, verbosity, count)


def _reply(context: Context, command: Document, verbosity: str, count: int) -> Document:
    plan = _plan(context)
    reply: Document = {
        "explainVersion": "1",
        "queryPlanner": {
            "namespace": f"{context.database}.{_shown_name(context)}",
            "parsedQuery": _query(context.body),
            "winningPlan": plan,
            "rejectedPlans": [],
        },
    }
    if verbosity != "queryPlanner":
        examined = _examined(context)
        stats = {**plan, "nReturned": count, "docsExamined": examined}
        reply["executionStats"] = {"executionSuccess": True, "nReturned": count, "executionTimeMillis": 0,
                                   "totalKeysExamined": 0, "totalDocsExamined": examined,
                                   "executionStages": stats}  # fmt: skip
        if verbosity == "allPlansExecution":
            reply["executionStats"]["allPlansExecution"] = []
    major, minor = context.state.version
    server = {"host": context.request.member.rpartition(":")[0], "version": f"{major}.{minor}.0"}
    return {**reply, "command": {**command, "$db": context.database}, "serverInfo": server}


def _shown_name(context: Context) -> str:
    return "$cmd.aggregate" if context.body[context.request.name] == 1 else context.collection_name


def _plan(context: Context) -> Document:
    collection = None if context.body[context.request.name] == 1 else context.collection()
    if collection is None:
        return {"stage": "EOF"}
    index = used_index(context, collection, _query(context.body))
    if index is None:
        return {"stage": "COLLSCAN", "direction": "forward"}
    scan = {"stage": "IXSCAN", "keyPattern": dict(index.keys), "indexName": index.name, "direction": "forward"}
    return {"stage": "FETCH", "inputStage": scan}


def _examined(context: Context) -> int:
    collection = None if context.body[context.request.name] == 1 else context.collection()
    if collection is None or collection.is_view:
        return 0
    plan = plan_of(collection.indexes.values(), _query(context.body), context.collation(collection))
    return len(context.access.records(collection)) if plan is None else len(set(context.pace.through(plan.keys())))


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


def _matches(context: Context) -> int:
    collection = context.collection()
    return sum(1 for _ in matching(context, collection, _query(context.body), context.collation(collection)))


def _find(context: Context) -> int:
    found = max(0, _matches(context) - int(context.body.get("skip") or 0))
    limit = abs(int(context.body.get("limit") or 0))
    return min(found, limit) if limit else found


def _aggregate(context: Context) -> int:
    pipeline = context.body["pipeline"]
    if pipeline and "$changeStream" in pipeline[0]:
        raise not_supported("explaining a change stream")
    writes = bool(pipeline) and bool(OUTPUTS & set(pipeline[-1]))
    return len(results(context, pipeline[:-1] if writes else pipeline))


def _update(context: Context) -> int:
    for statement in context.body["updates"]:
        update_of(statement, statement["u"], statement["q"], context.variables, context.collection())
    return _matches(context)


def _find_and_modify(context: Context) -> int:
    body = context.body
    if not body.get("remove"):
        update_of(body, body["update"], body.get("query") or {}, context.variables, context.collection())
    return min(1, _matches(context))


_QUERIES: Mapping[str, Callable[[Context], int]] = {
    "aggregate": _aggregate,
    "count": _find,
    "delete": _matches,
    "distinct": _matches,
    "find": _find,
    "findAndModify": _find_and_modify,
    "update": _update,
}

"""The command ``explain``, for ``find`` and ``aggregate``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gmongo.testing.command import Request, error
from gmongo.testing.store.aggregation import run_pipeline, select_namespace
from gmongo.testing.store.context import CommandContext
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.fields import check_body
from gmongo.testing.store.index import Index
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.reads import find_used_index, run_find
from gmongo.testing.unsupported import not_supported

_VERBOSITIES = ("queryPlanner", "executionStats", "allPlansExecution")


def explain(context: CommandContext) -> Document:
    """Execute ``explain``."""
    verbosity = context.body.get("verbosity")
    verbosity = "allPlansExecution" if verbosity is None else verbosity
    if verbosity not in _VERBOSITIES:
        raise bad_value(f"verbosity string must be one of {', '.join(_VERBOSITIES)}, not {verbosity!r}")
    command = context.body["explain"]
    if not command:
        raise error(59, "Explain failed due to unknown command: ")
    return describe_plan(context, command, verbosity)


def describe_plan(context: CommandContext, command: Document, verbosity: str) -> Document:
    """Return the reply to ``explain`` for a ``find`` or ``aggregate``."""
    name = next(iter(command))
    if name not in ("find", "aggregate"):
        raise not_supported("explain of an unsupported command or option", name)
    check_body(name, command, context.state.version)
    options = [option for option in ("sort", "projection", "skip", "limit") if command.get(option)]
    if options:
        raise not_supported("explain of an unsupported command or option", f"find with {options[0]}")
    request = Request(name, command, context.database, context.request.member, context.request.connection)
    inner_context = replace(context, request=request)
    query: Any = command.get("filter") or {}
    if name == "find":
        result_count = len(run_find(inner_context, inner_context.collection())[0])
    else:
        pipeline = command["pipeline"]
        if pipeline and {"$changeStream", "$out", "$merge"} & {*pipeline[0], *pipeline[-1]}:
            raise not_supported("explain of an unsupported command or option", next(iter(pipeline[-1])))
        result_count = len(run_pipeline(inner_context, pipeline))
        query = pipeline[0].get("$match", {}) if pipeline else {}
    planner_fields = {
        "namespace": select_namespace(inner_context),
        "winningPlan": _describe_stage(inner_context, query),
        "rejectedPlans": [],
    }
    major, minor = context.state.version
    server_info = {"host": context.request.member.rpartition(":")[0], "version": f"{major}.{minor}.0"}
    reply: Document = {"explainVersion": "1", "queryPlanner": planner_fields}
    if verbosity != "queryPlanner":
        reply["executionStats"] = {"executionSuccess": True, "nReturned": result_count}
    return {**reply, "command": {**command, "$db": context.database}, "serverInfo": server_info}


def _describe_stage(context: CommandContext, query: Document) -> Document:
    collection = None if context.body[context.request.name] == 1 else context.collection()
    if collection is None or collection.is_view:
        return {"stage": "EOF" if collection is None else "COLLSCAN"}
    id_filter = query.get("_id")
    if len(query) == 1 and id_filter is not None and not context.body.get("hint") and not has_operators(id_filter):
        return {"stage": "IDHACK"}
    index = find_used_index(context, collection, query)
    if index is None:
        return {"stage": "COLLSCAN", "direction": "forward"}
    return {"stage": "FETCH", "inputStage": _describe_index_scan(index)}


def _describe_index_scan(index: Index) -> Document:
    return {
        "stage": "IXSCAN",
        "keyPattern": dict(index.keys),
        "indexName": index.name,
        "isMultiKey": index.is_multikey,
        "isUnique": index.unique and not index.is_id_index,
        "isSparse": bool(index.options.get("sparse")),
        "isPartial": "partialFilterExpression" in index.options,
        "indexVersion": 2,
        "direction": "forward",
    }

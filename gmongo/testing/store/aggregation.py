"""The command ``aggregate``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bson.int64 import Int64

from gmongo.testing.command import error
from gmongo.testing.store.changes import open_change_stream
from gmongo.testing.store.context import CommandContext
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Document
from gmongo.testing.store.diagnostics import find_storage_stats
from gmongo.testing.store.environment import Environment
from gmongo.testing.store.errors import failed_to_parse, invalid_namespace, invalid_options, namespace_not_found
from gmongo.testing.store.expressions.compiling import Scope
from gmongo.testing.store.joins import evaluate_documents
from gmongo.testing.store.output import OUTPUT_STAGES, check_output, write_output
from gmongo.testing.store.replies import open_cursor, parse_batch_size
from gmongo.testing.store.selection import create_env, find_hint_index, read_documents, select
from gmongo.testing.store.stages import SPECIAL_STAGES, check_collection_stats, compile_pipeline, parse_stage
from gmongo.testing.unsupported import not_supported

Documents = list[Document]


def aggregate(context: CommandContext) -> Document:
    """Execute ``aggregate``."""
    body, pipeline = context.body, context.body["pipeline"]
    if "cursor" not in body and "explain" not in body:
        raise failed_to_parse("The 'cursor' option is required, except for aggregate with the explain argument")
    size = parse_batch_size(body)
    if pipeline and isinstance(pipeline[0], dict) and "$changeStream" in pipeline[0]:
        if context.request.in_transaction:
            raise error(263, "$changeStream cannot be used in a multi-document transaction")
        return open_cursor(context, open_change_stream(context), size)
    output = _find_output_stage(context, pipeline)
    documents = run_pipeline(context, pipeline[:-1] if output else pipeline)
    if output:
        write_output(context, output, documents)
        documents = []
    return open_cursor(context, Cursor(select_namespace(context), documents), size)


def select_namespace(context: CommandContext) -> str:
    """Return the namespace in the reply to ``aggregate``."""
    if context.body[context.request.name] == 1:
        return f"{context.database}.$cmd.aggregate"
    return context.namespace


def _find_output_stage(context: CommandContext, pipeline: list[Any]) -> Document | None:
    for stage in pipeline:
        name = next(iter(stage), "") if isinstance(stage, dict) else ""
        if name not in SPECIAL_STAGES and name not in _SOURCE_STAGES:
            parse_stage(stage)
        if name in OUTPUT_STAGES:
            check_output(name, stage[name])
    for position, stage in enumerate(pipeline):
        if not OUTPUT_STAGES & set(stage):
            continue
        (name,) = stage
        if position != len(pipeline) - 1:
            other_stages = [item for item in pipeline if not SPECIAL_STAGES & set(item)]
            compile_pipeline(other_stages, _create_env(context))
            raise error(40601, f"{name} can only be the final stage in the pipeline")
        if context.request.in_transaction:
            raise error(263, f"{name} cannot be used in a transaction")
        if name == "$out" and (context.body.get("readConcern") or {}).get("level") == "linearizable":
            raise invalid_options("$out cannot run with a readConcern level of 'linearizable'")
        if context.snapshot is not None:
            raise invalid_options(f"{name} cannot be used with the read concern level snapshot")
        output: Document = stage
        return output
    return None


def run_pipeline(context: CommandContext, pipeline: list[Any]) -> Documents:
    """Return the results of an aggregation pipeline."""
    env = _create_env(context)
    first_stage = next(iter(pipeline[0]), "") if pipeline and isinstance(pipeline[0], dict) else ""
    documents: Iterable[Document]
    if first_stage in _SOURCE_STAGES:
        run = compile_pipeline(pipeline[1:], env)
        documents = _SOURCE_STAGES[first_stage](context, pipeline[0][first_stage])
    else:
        # Compile all stages before the first read. Then errors do not depend on the documents.
        run = compile_pipeline(pipeline, env)
        documents, other_stages = _read_source(context, pipeline)
        if other_stages is not pipeline:
            run = compile_pipeline(other_stages, env)
    return list(run(documents, context.variables))


def _create_env(context: CommandContext) -> Environment:
    collection = None if context.body["aggregate"] == 1 else context.collection()
    collation = context.collation(collection)
    return create_env(context.access, context.database, context.variables, collation, context.pace)


def _read_source(context: CommandContext, pipeline: list[Any]) -> tuple[Iterable[Document], list[Any]]:
    if context.body["aggregate"] == 1:
        raise invalid_namespace("{aggregate: 1} is not valid for this pipeline; a collectionless source is needed")
    collection = context.collection()
    if collection is None or collection.is_view:
        documents = read_documents(
            context.access, context.database, context.collection_name, context.variables, context.pace
        )
        return documents, pipeline
    hint = context.body.get("hint")
    find_hint_index(collection, hint)
    query = pipeline[0].get("$match", {}) if pipeline else {}
    other_stages = pipeline[1:] if pipeline and "$match" in pipeline[0] else pipeline
    records = select(
        context.access, collection, query, context.collation(collection), context.variables, hint, context.pace
    )
    return (match.document for _, match in records), other_stages


def _evaluate_documents(context: CommandContext, spec: Any) -> Documents:
    if context.body[context.request.name] != 1:
        raise invalid_namespace("$documents must be run against a database, with {aggregate: 1}")
    return evaluate_documents(spec, Scope(frozenset(context.variables)))


def _read_collection_stats(context: CommandContext, spec: Any) -> Documents:
    check_collection_stats(spec)
    other_options = set(spec) - {"count", "storageStats"}
    if other_options:
        raise not_supported("$collStats with latencyStats or queryExecStats", other_options.pop())
    collection = context.collection()
    if collection is None:
        raise namespace_not_found(f"Collection [{context.namespace}] not found.")
    stats: Document = {"ns": collection.namespace, "host": context.request.member}
    if "storageStats" in spec:
        stats["storageStats"] = find_storage_stats(collection, int(spec["storageStats"].get("scale", 1)), context.pace)
    if "count" in spec:
        stats["count"] = len(context.access.records(collection))
    return [stats]


def _read_index_stats(context: CommandContext, _spec: Any) -> Documents:
    collection = context.collection()
    common_fields = {"host": context.request.member, "accesses": {"ops": Int64(0)}}
    indexes = collection.indexes.values() if collection else []
    return [
        {"name": index.name, "key": dict(index.keys), "spec": index.describe(), **common_fields} for index in indexes
    ]


def _refuse_current_op(context: CommandContext, _spec: Any) -> Documents:
    if context.database != "admin" or context.body["aggregate"] != 1:
        raise invalid_namespace("$currentOp must be run against the 'admin' database with {aggregate: 1}")
    raise not_supported("an unimplemented administrative command", "$currentOp in explain or without an object")


def _refuse_change_stream(_context: CommandContext, _spec: Any) -> Documents:
    raise not_supported("a change stream stage in a pipeline that does not begin with $changeStream")


_SOURCE_STAGES: Mapping[str, Callable[[CommandContext, Any], Documents]] = {
    "$changeStreamSplitLargeEvent": _refuse_change_stream,
    "$collStats": _read_collection_stats,
    "$currentOp": _refuse_current_op,
    "$documents": _evaluate_documents,
    "$indexStats": _read_index_stats,
    "$listLocalSessions": lambda context, spec: [{"_id": {"id": session.id}} for session in context.state.sessions],
    "$listSearchIndexes": lambda context, spec: refuse_search_index_command(context),
}


def refuse_search_index_command(context: CommandContext) -> Any:
    """Raise the error with which a server without Atlas Search replies to a command or stage for search indexes."""
    name = "$listSearchIndexes" if context.request.name == "aggregate" else context.request.name
    raise error(31082, f"{name} is not allowed: a server without Atlas Search does not support search indexes")

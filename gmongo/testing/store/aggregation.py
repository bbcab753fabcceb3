"""The command ``aggregate``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bson.int64 import Int64

from gmongo.testing.command import error
from gmongo.testing.store.changes import open_change_stream
from gmongo.testing.store.context import Context
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Document
from gmongo.testing.store.diagnostics import storage_stats
from gmongo.testing.store.environment import Environment
from gmongo.testing.store.errors import failed_to_parse, invalid_namespace, invalid_options, namespace_not_found
from gmongo.testing.store.expressions.compiling import Scope
from gmongo.testing.store.joins import documents_of as documents_stage
from gmongo.testing.store.output import OUTPUTS, check_output, write_output
from gmongo.testing.store.replies import batch_size, first_reply
from gmongo.testing.store.selection import documents_of, environment, hinted_index, select
from gmongo.testing.store.stages import ELSEWHERE, check_collection_stats, compile_pipeline, stage_name
from gmongo.testing.unsupported import not_supported

Documents = list[Document]


def aggregate(context: Context) -> Document:
    """Execute ``aggregate``."""
    body, pipeline = context.body, context.body["pipeline"]
    if "cursor" not in body and "explain" not in body:
        raise failed_to_parse("The 'cursor' option is required, except for aggregate with the explain argument")
    size = batch_size(body)
    if pipeline and isinstance(pipeline[0], dict) and "$changeStream" in pipeline[0]:
        if context.request.in_transaction:
            raise error(263, "$changeStream cannot be used in a multi-document transaction")
        return first_reply(context, open_change_stream(context), size)
    output = _output(context, pipeline)
    documents = pipeline_results(context, pipeline[:-1] if output else pipeline)
    if output:
        write_output(context, output, documents)
        documents = []
    return first_reply(context, Cursor(namespace(context), documents), size)


def namespace(context: Context) -> str:
    """Return the namespace in the reply to ``aggregate``."""
    if context.body[context.request.name] == 1:
        return f"{context.database}.$cmd.aggregate"
    return context.namespace


def _output(context: Context, pipeline: list[Any]) -> Document | None:
    for stage in pipeline:
        name = next(iter(stage), "") if isinstance(stage, dict) else ""
        if name not in ELSEWHERE and name not in _SOURCES:
            stage_name(stage)
        if name in OUTPUTS:
            check_output(name, stage[name])
    for number, stage in enumerate(pipeline):
        if not OUTPUTS & set(stage):
            continue
        (name,) = stage
        if number != len(pipeline) - 1:
            compile_pipeline([one for one in pipeline if not ELSEWHERE & set(one)], _env(context))
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


def pipeline_results(context: Context, pipeline: list[Any]) -> Documents:
    """Return the results of the pipeline."""
    env = _env(context)
    first = next(iter(pipeline[0]), "") if pipeline and isinstance(pipeline[0], dict) else ""
    documents: Iterable[Document]
    if first in _SOURCES:
        run = compile_pipeline(pipeline[1:], env)
        documents = _SOURCES[first](context, pipeline[0][first])
    else:
        # Compile all stages before the first read of the collection, so that an error does not depend on the documents.
        run = compile_pipeline(pipeline, env)
        documents, rest = _source(context, pipeline)
        if rest is not pipeline:
            run = compile_pipeline(rest, env)
    return list(run(documents, context.variables))


def _env(context: Context) -> Environment:
    collection = None if context.body["aggregate"] == 1 else context.collection()
    collation = context.collation(collection)
    return environment(context.access, context.database, context.variables, collation, context.pace)


def _source(context: Context, pipeline: list[Any]) -> tuple[Iterable[Document], list[Any]]:
    if context.body["aggregate"] == 1:
        raise invalid_namespace("{aggregate: 1} is not valid for this pipeline; a collectionless source is needed")
    collection = context.collection()
    if collection is None or collection.is_view:
        documents = documents_of(
            context.access, context.database, context.collection_name, context.variables, context.pace
        )
        return documents, pipeline
    hint = context.body.get("hint")
    hinted_index(collection, hint)
    query = pipeline[0].get("$match", {}) if pipeline else {}
    rest = pipeline[1:] if pipeline and "$match" in pipeline[0] else pipeline
    selected = select(
        context.access, collection, query, context.collation(collection), context.variables, hint, context.pace
    )
    return (record.document for _, record in selected), rest


def _documents(context: Context, spec: Any) -> Documents:
    if context.body[context.request.name] != 1:
        raise invalid_namespace("$documents must be run against a database, with {aggregate: 1}")
    return documents_stage(spec, Scope(frozenset(context.variables)))


def _collection_stats(context: Context, spec: Any) -> Documents:
    check_collection_stats(spec)
    refused = set(spec) - {"count", "storageStats"}
    if refused:
        raise not_supported("$collStats of latencies", refused.pop())
    collection = context.collection()
    if collection is None:
        raise namespace_not_found(f"Collection [{context.namespace}] not found.")
    shown: Document = {"ns": collection.namespace, "host": context.request.member}
    if "storageStats" in spec:
        shown["storageStats"] = storage_stats(collection, int(spec["storageStats"].get("scale", 1)), context.pace)
    if "count" in spec:
        shown["count"] = len(context.access.records(collection))
    return [shown]


def _index_stats(context: Context, _spec: Any) -> Documents:
    collection = context.collection()
    common = {"host": context.request.member, "accesses": {"ops": Int64(0)}}
    indexes = collection.indexes.values() if collection else []
    return [{"name": one.name, "key": dict(one.keys), "spec": one.description(), **common} for one in indexes]


def _current_operations(context: Context, _spec: Any) -> Documents:
    if context.database != "admin":
        raise invalid_namespace("$currentOp must be run against the 'admin' database with {aggregate: 1}")
    raise not_supported("another command", "$currentOp with options of another type")


def _change_stream_stage(_context: Context, _spec: Any) -> Documents:
    raise not_supported("a change stream stage in another pipeline")


_SOURCES: Mapping[str, Callable[[Context, Any], Documents]] = {
    "$changeStreamSplitLargeEvent": _change_stream_stage,
    "$collStats": _collection_stats,
    "$currentOp": _current_operations,
    "$documents": _documents,
    "$indexStats": _index_stats,
    "$listLocalSessions": lambda context, spec: [{"_id": {"id": session.id}} for session in context.state.sessions],
    "$listSearchIndexes": lambda context, spec: search_index_command(context),
}


def search_index_command(context: Context) -> Any:
    """Raise the error with which a server without Atlas Search replies to a command or stage for search indexes."""
    name = "$listSearchIndexes" if context.request.name == "aggregate" else context.request.name
    raise error(31082, f"{name} is not allowed: using Atlas Search Database Commands and the $listSearchIndexes "
                "aggregation stage requires additional configuration. Please connect to Atlas or an AtlasCLI local "
                "deployment to enable.")  # fmt: skip

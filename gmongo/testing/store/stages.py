"""Compile the stages of a pipeline, except the stages in ``SPECIAL_STAGES``.

All stages are compiled before the first document is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from bson.int64 import Int64

from gmongo import _random
from gmongo.testing import unsupported
from gmongo.testing.command import error
from gmongo.testing.store import joins
from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.environment import Document, Documents, Environment, Stage, set_value
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import with_document
from gmongo.testing.store.expressions.compiling import Scope, Variables, compile_expression, split_path
from gmongo.testing.store.expressions.operands import require_type
from gmongo.testing.store.grouping import compile_group
from gmongo.testing.store.joins import check_options
from gmongo.testing.store.matching import compile_query
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.projection import Project, compile_add_fields, compile_project, compile_unset
from gmongo.testing.store.text_search import find_search
from gmongo.testing.store.values import MISSING, is_integral, is_number, trunc
from gmongo.testing.unsupported import not_supported

StageCompiler = Callable[[Any, Environment], Stage]


def compile_pipeline(pipeline: Any, env: Environment) -> Stage:
    """Compile a pipeline to a function of the type ``Stage``."""
    if not isinstance(pipeline, list):
        raise error(14, "a pipeline must be an array")
    stages = [STAGES[name](spec[name], env) for spec in pipeline for name in [parse_stage(spec)]]

    def run(documents: Documents, variables: Variables) -> Documents:
        for stage in stages:
            documents = stage(env.pace.iterate(documents), variables)
        return documents

    return run


def parse_stage(stage: Any) -> str:
    """Return the name of a stage in ``STAGES``, or raise an error for any other stage."""
    if not isinstance(stage, dict) or len(stage) != 1:
        raise error(40323, "A pipeline stage specification object must contain exactly one field.")
    (name,) = stage
    if name in STAGES:
        return str(name)
    if name == "$collStats":
        check_collection_stats(stage[name])
    if name in SPECIAL_STAGES:
        raise error(40602, f"{name} is only valid as the first or last stage in a pipeline")
    if name in unsupported.STAGES:
        raise not_supported(name)
    raise error(40324, f"Unrecognized pipeline stage name: '{name}'")


def check_collection_stats(spec: Any) -> None:
    """Check that the specification of ``$collStats`` is a document."""
    if not isinstance(spec, dict):
        raise error(5447000, f"$collStats must take a nested object but found: $collStats: {spec!r}")


def compile_update_pipeline(
    pipeline: list[Any], variables: Variables, collation: Collation = BINARY
) -> Callable[[Document], Document]:
    """Compile the pipeline of an update to a function that returns the updated document."""
    for stage in pipeline:
        name = parse_stage(stage)
        if name not in _UPDATE_STAGES:
            raise error(72, f"{name} is not allowed to be used within an update")
    run = compile_pipeline(pipeline, Environment.from_variables(variables, collation))
    return lambda document: next(iter(run([document], variables)))


def _compile_match(spec: Any, env: Environment) -> Stage:
    if not isinstance(spec, dict):
        raise malformed("$match")
    if find_search(spec) is not None:
        raise not_supported("$text in a pipeline")
    match = compile_query(spec, env.scope)
    return lambda documents, variables: (document for document in documents if match(document, variables))


def _create_document_compiler(compile_function: Callable[[Any, Scope], Project]) -> StageCompiler:
    def compile_stage(spec: Any, env: Environment) -> Stage:
        function = compile_function(spec, env.scope)
        return lambda documents, variables: (function(document, variables) for document in documents)

    return compile_stage


def _compile_replace_with(expression: Any, scope: Scope) -> Project:
    compute_root = compile_expression(expression, scope)

    def replace_document(document: Document, variables: Variables) -> Document:
        root: Document = require_type(dict, compute_root(with_document(variables, document)))
        return root

    return replace_document


def _compile_replace_root(spec: Any, scope: Scope) -> Project:
    return _compile_replace_with(check_options("$replaceRoot", spec, "newRoot")["newRoot"], scope)


def _compile_sort(spec: Any, env: Environment) -> Stage:
    if not isinstance(spec, dict) or not spec:
        raise malformed("$sort")
    sort = compile_sort(spec, env.collation, env.pace)
    return lambda documents, variables: sort(documents, lambda document: document)


def _parse_integer(name: str, spec: Any, minimum: int) -> int:
    if not is_number(spec) or not is_integral(spec) or trunc(spec) < minimum:
        raise malformed(name)
    return trunc(spec)


def _compile_limit(spec: Any, _env: Environment) -> Stage:
    limit = _parse_integer("$limit", spec, 1)
    return lambda documents, variables: islice(documents, limit)


def _compile_skip(spec: Any, _env: Environment) -> Stage:
    skip = _parse_integer("$skip", spec, 0)
    return lambda documents, variables: islice(documents, skip, None)


def _compile_count(spec: Any, _env: Environment) -> Stage:
    if type(spec) is not str or not spec or spec.startswith("$") or "\0" in spec or "." in spec:
        raise malformed("$count")

    def run(documents: Documents, _variables: Variables) -> Documents:
        document_count = sum(1 for _ in documents)
        return [{spec: document_count}] if document_count else []

    return run


def _compile_sample(spec: Any, _env: Environment) -> Stage:
    size = _parse_integer("$sample", check_options("$sample", spec, "size")["size"], 1)

    def run(documents: Documents, _variables: Variables) -> Documents:
        inputs = list(documents)
        return _random.sample(inputs, min(size, len(inputs)))

    return run


def _compile_unwind(spec: Any, env: Environment) -> Stage:
    options = {"path": spec} if isinstance(spec, str) else spec
    check_options("$unwind", options, "path", "includeArrayIndex preserveNullAndEmptyArrays")
    path, index_path, keep = (options.get(name) for name in ("path", "includeArrayIndex", "preserveNullAndEmptyArrays"))
    if (
        type(path) is not str
        or not path.startswith("$")
        or (keep is not None and not isinstance(keep, bool))
        or (index_path is not None and (type(index_path) is not str or not index_path or index_path.startswith("$")))
    ):
        raise malformed("$unwind")
    parts, index_parts = split_path(path[1:]), index_path.split(".") if index_path else None

    def run(documents: Documents, _variables: Variables) -> Documents:
        for document in documents:
            for position, result in env.pace.iterate(_unwind_document(document, parts, bool(keep))):
                yield result if index_parts is None else set_value(result, index_parts, position)

    return run


def _unwind_document(document: Document, parts: list[str], keep: bool) -> Iterable[tuple[Int64 | None, Document]]:
    value: Any = document
    for part in parts:
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    if isinstance(value, list) and value:
        return ((Int64(position), set_value(document, parts, element)) for position, element in enumerate(value))
    if value is not MISSING and value is not None and value != []:
        return [(None, document)]
    if not keep:
        return []
    return [(None, set_value(document, parts, MISSING) if value == [] else document)]


def _compile_sort_by_count(spec: Any, env: Environment) -> Stage:
    if not (isinstance(spec, str) and spec.startswith("$")) and not has_operators(spec):
        raise malformed("$sortByCount")
    return compile_pipeline([{"$group": {"_id": spec, "count": {"$sum": 1}}}, {"$sort": {"count": -1}}], env)


def _bind_pipeline_compiler(compile_stage: Callable[[Any, Environment, joins.CompilePipeline], Stage]) -> StageCompiler:
    return lambda spec, env: compile_stage(spec, env, compile_pipeline)


STAGES: Mapping[str, StageCompiler] = {
    "$addFields": _create_document_compiler(compile_add_fields),
    "$count": _compile_count,
    "$facet": _bind_pipeline_compiler(joins.compile_facet),
    "$group": compile_group,
    "$limit": _compile_limit,
    "$lookup": _bind_pipeline_compiler(joins.compile_lookup),
    "$match": _compile_match,
    "$project": _create_document_compiler(compile_project),
    "$replaceRoot": _create_document_compiler(_compile_replace_root),
    "$replaceWith": _create_document_compiler(_compile_replace_with),
    "$sample": _compile_sample,
    "$set": _create_document_compiler(compile_add_fields),
    "$skip": _compile_skip,
    "$sort": _compile_sort,
    "$sortByCount": _compile_sort_by_count,
    "$unionWith": _bind_pipeline_compiler(joins.compile_union_with),
    "$unset": _create_document_compiler(lambda spec, _scope: compile_unset(spec)),
    "$unwind": _compile_unwind,
}
# The stages that are only allowed at the beginning or end of a pipeline. Other modules execute these stages.
SPECIAL_STAGES = frozenset({
    "$changeStream", "$changeStreamSplitLargeEvent", "$collStats", "$currentOp", "$documents", "$indexStats",
    "$listLocalSessions", "$merge", "$out"
})  # fmt: skip
_UPDATE_STAGES = frozenset({"$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"})

"""Compile the stages of a pipeline, except stages that read other sources or write results.

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
from gmongo.testing.store.environment import Document, Documents, Environment, Stage, with_value
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import with_document
from gmongo.testing.store.expressions.compiling import Scope, Variables, compile_expression, split_path
from gmongo.testing.store.expressions.operands import require_type
from gmongo.testing.store.grouping import compile_group
from gmongo.testing.store.joins import checked
from gmongo.testing.store.matching import compile_query
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.projection import Project, compile_add_fields, compile_project, compile_unset
from gmongo.testing.store.text_search import search_in
from gmongo.testing.store.values import MISSING, is_number, is_whole, whole
from gmongo.testing.unsupported import not_supported

Make = Callable[[Any, Environment], Stage]


def compile_pipeline(pipeline: Any, env: Environment) -> Stage:
    """Compile a pipeline to a function of the type ``Stage``."""
    if not isinstance(pipeline, list):
        raise error(14, "a pipeline must be an array")
    stages = [STAGES[name](spec[name], env) for spec in pipeline for name in [stage_name(spec)]]

    def run(documents: Documents, variables: Variables) -> Documents:
        for stage in stages:
            documents = stage(env.pace.through(documents), variables)
        return documents

    return run


def stage_name(stage: Any) -> str:
    """Return the name of a stage."""
    if not isinstance(stage, dict) or len(stage) != 1:
        raise error(40323, "A pipeline stage specification object must contain exactly one field.")
    (name,) = stage
    if name in STAGES:
        return str(name)
    if name == "$collStats":
        check_collection_stats(stage[name])
    if name in ELSEWHERE:
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
        name = stage_name(stage)
        if name not in _IN_UPDATES:
            raise error(72, f"{name} is not allowed to be used within an update")
    run = compile_pipeline(pipeline, Environment.for_variables(variables, collation))
    return lambda document: next(iter(run([document], variables)))


def _match(spec: Any, env: Environment) -> Stage:
    if not isinstance(spec, dict):
        raise malformed("$match")
    if search_in(spec) is not None:
        raise not_supported("$text in a pipeline")
    match = compile_query(spec, env.scope)
    return lambda documents, variables: (document for document in documents if match(document, variables))


def _for_each_document(make: Callable[[Any, Scope], Project]) -> Make:
    def compile_stage(spec: Any, env: Environment) -> Stage:
        function = make(spec, env.scope)
        return lambda documents, variables: (function(document, variables) for document in documents)

    return compile_stage


def _replace_with(expression: Any, scope: Scope) -> Project:
    root_of = compile_expression(expression, scope)

    def replaced(document: Document, variables: Variables) -> Document:
        root: Document = require_type(dict, root_of(with_document(variables, document)))
        return root

    return replaced


def _replace_root(spec: Any, scope: Scope) -> Project:
    return _replace_with(checked("$replaceRoot", spec, "newRoot")["newRoot"], scope)


def _sort(spec: Any, env: Environment) -> Stage:
    if not isinstance(spec, dict) or not spec:
        raise malformed("$sort")
    sort = compile_sort(spec, env.collation, env.pace)
    return lambda documents, variables: sort(documents, lambda document: document)


def _integral(name: str, spec: Any, least: int) -> int:
    if not is_number(spec) or not is_whole(spec) or whole(spec) < least:
        raise malformed(name)
    return whole(spec)


def _limit(spec: Any, _env: Environment) -> Stage:
    limit = _integral("$limit", spec, 1)
    return lambda documents, variables: islice(documents, limit)


def _skip(spec: Any, _env: Environment) -> Stage:
    skip = _integral("$skip", spec, 0)
    return lambda documents, variables: islice(documents, skip, None)


def _count(spec: Any, _env: Environment) -> Stage:
    if type(spec) is not str or not spec or spec.startswith("$") or "\0" in spec or "." in spec:
        raise malformed("$count")

    def run(documents: Documents, _variables: Variables) -> Documents:
        number = sum(1 for _ in documents)
        return [{spec: number}] if number else []

    return run


def _sample(spec: Any, _env: Environment) -> Stage:
    size = _integral("$sample", checked("$sample", spec, "size")["size"], 1)

    def run(documents: Documents, _variables: Variables) -> Documents:
        found = list(documents)
        return _random.sample(found, min(size, len(found)))

    return run


def _unwind(spec: Any, env: Environment) -> Stage:
    options = {"path": spec} if isinstance(spec, str) else spec
    checked("$unwind", options, "path", "includeArrayIndex preserveNullAndEmptyArrays")
    path, index, keep = (options.get(name) for name in ("path", "includeArrayIndex", "preserveNullAndEmptyArrays"))
    if (
        type(path) is not str
        or not path.startswith("$")
        or (keep is not None and not isinstance(keep, bool))
        or (index is not None and (type(index) is not str or not index or index.startswith("$")))
    ):
        raise malformed("$unwind")
    parts, index_parts = split_path(path[1:]), index.split(".") if index else None

    def run(documents: Documents, _variables: Variables) -> Documents:
        for document in documents:
            for place, made in env.pace.through(_unwound(document, parts, bool(keep))):
                yield made if index_parts is None else with_value(made, index_parts, place)

    return run


def _unwound(document: Document, parts: list[str], keep: bool) -> Iterable[tuple[Int64 | None, Document]]:
    value: Any = document
    for part in parts:
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    if isinstance(value, list) and value:
        return ((Int64(place), with_value(document, parts, element)) for place, element in enumerate(value))
    if value is not MISSING and value is not None and value != []:
        return [(None, document)]
    if not keep:
        return []
    return [(None, with_value(document, parts, MISSING) if value == [] else document)]


def _sort_by_count(spec: Any, env: Environment) -> Stage:
    if not (isinstance(spec, str) and spec.startswith("$")) and not is_operators(spec):
        raise malformed("$sortByCount")
    return compile_pipeline([{"$group": {"_id": spec, "count": {"$sum": 1}}}, {"$sort": {"count": -1}}], env)


def _with_pipelines(make: Callable[[Any, Environment, joins.CompilePipeline], Stage]) -> Make:
    return lambda spec, env: make(spec, env, compile_pipeline)


STAGES: Mapping[str, Make] = {
    "$addFields": _for_each_document(compile_add_fields),
    "$count": _count,
    "$facet": _with_pipelines(joins.facet),
    "$group": compile_group,
    "$limit": _limit,
    "$lookup": _with_pipelines(joins.lookup),
    "$match": _match,
    "$project": _for_each_document(compile_project),
    "$replaceRoot": _for_each_document(_replace_root),
    "$replaceWith": _for_each_document(_replace_with),
    "$sample": _sample,
    "$set": _for_each_document(compile_add_fields),
    "$skip": _skip,
    "$sort": _sort,
    "$sortByCount": _sort_by_count,
    "$unionWith": _with_pipelines(joins.union_with),
    "$unset": _for_each_document(lambda spec, _scope: compile_unset(spec)),
    "$unwind": _unwind,
}
# The stages that are only allowed at the beginning or end of a pipeline. Other modules execute these stages.
ELSEWHERE = frozenset({
    "$changeStream", "$changeStreamSplitLargeEvent", "$collStats", "$currentOp", "$documents", "$indexStats",
    "$listLocalSessions", "$merge", "$out"
})  # fmt: skip
_IN_UPDATES = frozenset({"$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"})

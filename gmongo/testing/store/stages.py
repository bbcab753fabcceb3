"""The stages of an aggregation pipeline that turn documents into documents."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from mongomock import OperationFailure
from mongomock.aggregate import _handle_bucket_stage as bucket_of_mongomock

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store import joins
from gmongo.testing.store.errors import bad_value, location
from gmongo.testing.store.expressions import evaluate
from gmongo.testing.store.grouping import group
from gmongo.testing.store.ordering import sorted_by
from gmongo.testing.store.paths import split, value_at
from gmongo.testing.store.projection import compile_add_fields, compile_project, compile_unset
from gmongo.testing.store.surroundings import Document, Documents, Surroundings, with_value
from gmongo.testing.store.values import MISSING, is_whole, type_name

Stage = Callable[[Documents, Any, Surroundings], Documents]


def run(documents: Documents, pipeline: list[Any], around: Surroundings) -> Documents:
    """What the pipeline makes of the documents.

    :raises CommandError: for a stage that does not exist, or is not supported.
    """
    for stage in pipeline:
        name = stage_name(stage)
        documents = STAGES[name](documents, stage[name], around)
    return documents


def stage_name(stage: Any) -> str:
    """The name of a stage that :func:`run` can run.

    :raises CommandError: if it is no stage, or one that is not supported.
    """
    if not isinstance(stage, dict) or len(stage) != 1:
        raise location(40323, "A pipeline stage specification object must contain exactly one field.")
    (name,) = stage
    if name in STAGES:
        return str(name)
    if name in ELSEWHERE:
        raise location(40602, f"{name} is only valid as the first or last stage in a pipeline")
    if name in _UNSUPPORTED:
        raise not_supported(f"the stage {name}")
    raise location(40324, f"Unrecognized pipeline stage name: '{name}'")


def compile_update_pipeline(pipeline: list[Any], variables: Mapping[str, Any]) -> Callable[[Document], Document]:
    """The function of an update given as a pipeline."""
    around = Surroundings(variables)
    for stage in pipeline:
        name = stage_name(stage)
        if name not in _IN_UPDATES:
            raise CommandError(72, "InvalidOptions", f"{name} is not allowed to be used within an update")
    return lambda document: run([document], pipeline, around)[0]


def _match(documents: Documents, spec: Any, around: Surroundings) -> Documents:
    match = around.collation.compile_filter(spec, around.variables)
    return [document for document in documents if match(document)]


def _joining(stage: Callable[[Documents, Any, Surroundings, joins.Run], Documents]) -> Stage:
    return lambda documents, spec, around: stage(documents, spec, around, run)


def _each(make: Callable[[Any, Mapping[str, Any]], Callable[[Document], Document]]) -> Stage:
    def stage(documents: Documents, spec: Any, around: Surroundings) -> Documents:
        function = make(spec, around.variables)
        return [function(document) for document in documents]

    return stage


def _unset(spec: Any, _variables: Mapping[str, Any]) -> Callable[[Document], Document]:
    return compile_unset(spec)


def _replace_with(expression: Any, variables: Mapping[str, Any]) -> Callable[[Document], Document]:
    def replaced(document: Document) -> Document:
        root = evaluate(expression, document, variables)
        if not isinstance(root, dict):
            raise location(40228, f"'newRoot' expression must evaluate to an object, but it was {type_name(root)}")
        return root

    return replaced


def _replace_root(spec: Any, variables: Mapping[str, Any]) -> Callable[[Document], Document]:
    if not isinstance(spec, dict) or set(spec) != {"newRoot"}:
        raise location(40231, "$replaceRoot needs an object with newRoot")
    return _replace_with(spec["newRoot"], variables)


def _group(documents: Documents, spec: Any, around: Surroundings) -> Documents:
    return group(documents, spec, around.variables)


def _sort(documents: Documents, spec: Any, around: Surroundings) -> Documents:
    if not isinstance(spec, dict) or not spec:
        raise location(15976, "$sort stage must have at least one sort key")
    return sorted_by(documents, spec, around.collation.folded)


def _count_of(name: str, spec: Any, least: int) -> int:
    if not is_whole(spec) or spec < least:
        raise location(5107201, f"invalid argument to {name} stage: {spec!r}")
    return int(spec)


def _limit(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    return documents[: _count_of("$limit", spec, 1)]


def _skip(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    return documents[_count_of("$skip", spec, 0) :]


def _count(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    if type(spec) is not str or not spec or spec.startswith("$") or "." in spec:
        raise location(40156, "the count field must be a non-empty string without '$' and '.'")
    return [{spec: len(documents)}] if documents else []


def _sample(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    size = _count_of("$sample", spec.get("size") if isinstance(spec, dict) else spec, 1)
    return random.sample(documents, min(size, len(documents)))


def _sort_by_count(documents: Documents, spec: Any, around: Surroundings) -> Documents:
    found = group(documents, {"_id": spec, "count": {"$sum": 1}}, around.variables)
    return sorted_by(found, {"count": -1}, lambda document: document)


def _unwind(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    options = spec if isinstance(spec, dict) else {"path": spec}
    path = options.get("path")
    if not isinstance(path, str) or not path.startswith("$"):
        raise location(28818, "path option to $unwind stage should be prefixed with a '$'")
    return [made for document in documents for made in _unwound(document, path[1:], options)]


def _unwound(document: Document, path: str, options: Mapping[str, Any]) -> Documents:
    value = value_at(document, path)
    index_name = options.get("includeArrayIndex")
    if isinstance(value, list) and value:
        return [
            _with_index(with_value(document, split(path), element), index_name, index)
            for index, element in enumerate(value)
        ]
    if value is not MISSING and value is not None and value != []:
        return [_with_index(document, index_name, None)]
    if not options.get("preserveNullAndEmptyArrays"):
        return []
    kept = with_value(document, split(path), MISSING) if value == [] else document
    return [_with_index(kept, index_name, None)]


def _with_index(document: Document, name: str | None, index: int | None) -> Document:
    return with_value(document, split(name), index) if name else document


def _bucket(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    try:
        return list(bucket_of_mongomock(documents, None, spec))
    except NotImplementedError as error:
        raise not_supported(str(error)) from None
    except (OperationFailure, TypeError, ValueError, KeyError) as error:
        raise bad_value(str(error)) from None


STAGES: Mapping[str, Stage] = {
    "$addFields": _each(compile_add_fields),
    "$bucket": _bucket,
    "$count": _count,
    "$facet": _joining(joins.facet),
    "$graphLookup": _joining(joins.graph_lookup),
    "$group": _group,
    "$limit": _limit,
    "$lookup": _joining(joins.lookup),
    "$match": _match,
    "$project": _each(compile_project),
    "$replaceRoot": _each(_replace_root),
    "$replaceWith": _each(_replace_with),
    "$sample": _sample,
    "$set": _each(compile_add_fields),
    "$skip": _skip,
    "$sort": _sort,
    "$sortByCount": _sort_by_count,
    "$unionWith": _joining(joins.union_with),
    "$unset": _each(_unset),
    "$unwind": _unwind,
}
# First or last in a pipeline; the commands see to them.
ELSEWHERE = frozenset(
    {
        "$changeStream",
        "$changeStreamSplitLargeEvent",
        "$collStats",
        "$currentOp",
        "$documents",
        "$indexStats",
        "$listLocalSessions",
        "$listSessions",
        "$merge",
        "$out",
    }
)
_IN_UPDATES = frozenset({"$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"})
_UNSUPPORTED = frozenset(
    {
        "$bucketAuto",
        "$densify",
        "$fill",
        "$geoNear",
        "$listClusterCatalog",
        "$listSampledQueries",
        "$planCacheStats",
        "$querySettings",
        "$queryStats",
        "$rankFusion",
        "$redact",
        "$scoreFusion",
        "$search",
        "$searchMeta",
        "$setWindowFields",
        "$shardedDataDistribution",
        "$vectorSearch",
    }
)

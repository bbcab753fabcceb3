"""The stages of an aggregation pipeline that turn documents into documents."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mongomock import OperationFailure
from mongomock.aggregate import _handle_bucket_stage as bucket_of_mongomock

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.errors import bad_value, location
from gmongo.testing.store.expressions import evaluate
from gmongo.testing.store.grouping import group
from gmongo.testing.store.ordering import sorted_by
from gmongo.testing.store.paths import split, value_at
from gmongo.testing.store.projection import compile_add_fields, compile_project, compile_unset
from gmongo.testing.store.values import MISSING, copy_value, equal, is_number, type_name

Document = dict[str, Any]
Documents = list[Document]


def _no_collection(name: str) -> Documents:
    raise not_supported(f"reading the collection {name} here")


@dataclass(frozen=True)
class Surroundings:
    """What stages know besides their documents.

    :param variables: of ``let``, and ``NOW``.
    :param read: the documents of another collection of the database.
    """

    variables: Mapping[str, Any]
    read: Callable[[str], Documents] = _no_collection
    collation: Collation = BINARY


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


def _each(make: Callable[[Any, Mapping[str, Any]], Callable[[Document], Document]]) -> Stage:
    def stage(documents: Documents, spec: Any, around: Surroundings) -> Documents:
        function = make(spec, around.variables)
        return [function(document) for document in documents]

    return stage


Stage = Callable[[Documents, Any, Surroundings], Documents]


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
    if not is_number(spec) or spec < least or spec != int(spec):
        raise location(5107201, f"invalid argument to {name} stage: {spec!r}")
    return int(spec)


def _limit(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    return documents[: _count_of("$limit", spec, 1)]


def _skip(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    return documents[_count_of("$skip", spec, 0) :]


def _count(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    if not isinstance(spec, str) or not spec or spec.startswith("$") or "." in spec:
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
            _with_index(_with(document, split(path), element), index_name, index) for index, element in enumerate(value)
        ]
    if value is not MISSING and value is not None and value != []:
        return [_with_index(document, index_name, None)]
    if not options.get("preserveNullAndEmptyArrays"):
        return []
    kept = _with(document, split(path), MISSING) if value == [] else document
    return [_with_index(kept, index_name, None)]


def _with(document: Document, parts: list[str], value: Any) -> Document:
    if len(parts) > 1:
        child = document.get(parts[0], {})
        return {**document, parts[0]: _with(child if isinstance(child, dict) else {}, parts[1:], value)}
    if value is MISSING:
        return {name: part for name, part in document.items() if name != parts[0]}
    return {**document, parts[0]: value}


def _with_index(document: Document, name: str | None, index: int | None) -> Document:
    return _with(document, split(name), index) if name else document


def _lookup(documents: Documents, spec: Any, around: Surroundings) -> Documents:
    if not isinstance(spec, dict) or not isinstance(spec.get("from"), str) or "as" not in spec:
        raise bad_value("$lookup needs 'from' and 'as'")
    if "pipeline" not in spec and not {"localField", "foreignField"} <= set(spec):
        raise bad_value("$lookup needs localField and foreignField, or a pipeline")
    foreign = around.read(spec["from"])
    return [_with(document, split(spec["as"]), _joined(document, foreign, spec, around)) for document in documents]


def _joined(document: Document, foreign: Documents, spec: Mapping[str, Any], around: Surroundings) -> Documents:
    if "localField" in spec:
        local = value_at(document, spec["localField"])
        wanted = local if isinstance(local, list) else [None if local is MISSING else local]
        match = around.collation.compile_filter({spec["foreignField"]: {"$in": wanted}}, {})
        foreign = [one for one in foreign if match(one)]
    let = {name: evaluate(part, document, around.variables) for name, part in spec.get("let", {}).items()}
    inner = replace(around, variables={**around.variables, **let})
    return run(copy_value(foreign), spec.get("pipeline", []), inner)


def _union_with(documents: Documents, spec: Any, around: Surroundings) -> Documents:
    options: dict[str, Any] = {"coll": spec} if isinstance(spec, str) else spec
    if "coll" not in options:
        raise not_supported("$unionWith without a collection")
    return documents + run(copy_value(around.read(options["coll"])), options.get("pipeline", []), around)


def _facet(documents: Documents, spec: Any, around: Surroundings) -> Documents:
    if not isinstance(spec, dict) or not spec:
        raise location(40169, "the $facet specification must be a non-empty object")
    return [{name: run(copy_value(documents), pipeline, around) for name, pipeline in spec.items()}]


def _bucket(documents: Documents, spec: Any, _around: Surroundings) -> Documents:
    try:
        return list(bucket_of_mongomock(documents, None, spec))
    except NotImplementedError as error:
        raise not_supported(str(error)) from None
    except (OperationFailure, TypeError, ValueError, KeyError) as error:
        raise bad_value(str(error)) from None


def _graph_lookup(documents: Documents, spec: Any, around: Surroundings) -> Documents:
    if "maxDepth" in spec and not is_number(spec["maxDepth"]):
        raise location(40100, "maxDepth requires a numeric argument")
    foreign = around.read(spec["from"])
    if "restrictSearchWithMatch" in spec:
        foreign = _match(foreign, spec["restrictSearchWithMatch"], around)
    return [_with(document, split(spec["as"]), _reached(document, foreign, spec, around)) for document in documents]


def _reached(document: Document, foreign: Documents, spec: Mapping[str, Any], around: Surroundings) -> Documents:
    start = evaluate(spec["startWith"], document, around.variables)
    frontier, found, depth = start if isinstance(start, list) else [start], [], 0
    left = list(foreign)
    while frontier and depth <= spec.get("maxDepth", depth):
        hits = [one for one in left if any(equal(value_at(one, spec["connectToField"]), value) for value in frontier)]
        left = [one for one in left if one not in hits]
        found += [_with(one, [spec["depthField"]], depth) if "depthField" in spec else one for one in hits]
        frontier = [value_at(one, spec["connectFromField"]) for one in hits]
        frontier = [v for value in frontier for v in (value if isinstance(value, list) else [value])]
        depth += 1
    return copy_value(found)


STAGES: Mapping[str, Stage] = {
    "$addFields": _each(compile_add_fields),
    "$bucket": _bucket,
    "$count": _count,
    "$facet": _facet,
    "$graphLookup": _graph_lookup,
    "$group": _group,
    "$limit": _limit,
    "$lookup": _lookup,
    "$match": _match,
    "$project": _each(compile_project),
    "$replaceRoot": _each(_replace_root),
    "$replaceWith": _each(_replace_with),
    "$sample": _sample,
    "$set": _each(compile_add_fields),
    "$skip": _skip,
    "$sort": _sort,
    "$sortByCount": _sort_by_count,
    "$unionWith": _union_with,
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

"""The stages that bring in documents of other collections, or of other pipelines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gmongo.testing.command import not_supported
from gmongo.testing.store.errors import bad_value, location
from gmongo.testing.store.expressions import evaluate
from gmongo.testing.store.paths import split, value_at
from gmongo.testing.store.surroundings import Document, Documents, Surroundings, with_value
from gmongo.testing.store.values import MISSING, copy_value, equal, is_number

Run = Callable[[Documents, list[Any], Surroundings], Documents]


def lookup(documents: Documents, spec: Any, around: Surroundings, run: Run) -> Documents:
    """``$lookup``."""
    if not isinstance(spec, dict) or not isinstance(spec.get("from"), str) or "as" not in spec:
        raise bad_value("$lookup needs 'from' and 'as'")
    if "pipeline" not in spec and not {"localField", "foreignField"} <= set(spec):
        raise bad_value("$lookup needs localField and foreignField, or a pipeline")
    foreign = around.read(spec["from"])
    return [
        with_value(document, split(spec["as"]), _joined(document, foreign, spec, around, run)) for document in documents
    ]


def _joined(
    document: Document, foreign: Documents, spec: Mapping[str, Any], around: Surroundings, run: Run
) -> Documents:
    if "localField" in spec:
        local = value_at(document, spec["localField"])
        wanted = local if isinstance(local, list) else [None if local is MISSING else local]
        match = around.collation.compile_filter({spec["foreignField"]: {"$in": wanted}}, {})
        foreign = [one for one in foreign if match(one)]
    let = {name: evaluate(part, document, around.variables) for name, part in spec.get("let", {}).items()}
    inner = replace(around, variables={**around.variables, **let})
    return run(copy_value(foreign), spec.get("pipeline", []), inner)


def union_with(documents: Documents, spec: Any, around: Surroundings, run: Run) -> Documents:
    """``$unionWith``."""
    options: dict[str, Any] = {"coll": spec} if isinstance(spec, str) else spec
    if not isinstance(options, dict) or type(options.get("coll", "")) is not str:
        raise bad_value("$unionWith needs the name of a collection, or an object")
    if "coll" not in options:
        raise not_supported("$unionWith without a collection")
    return documents + run(copy_value(around.read(options["coll"])), options.get("pipeline", []), around)


def facet(documents: Documents, spec: Any, around: Surroundings, run: Run) -> Documents:
    """``$facet``."""
    if not isinstance(spec, dict) or not spec:
        raise location(40169, "the $facet specification must be a non-empty object")
    if not all(isinstance(pipeline, list) for pipeline in spec.values()):
        raise location(40170, "arguments to $facet must be arrays")
    return [{name: run(copy_value(documents), pipeline, around) for name, pipeline in spec.items()}]


def graph_lookup(documents: Documents, spec: Any, around: Surroundings, run: Run) -> Documents:
    """``$graphLookup``."""
    needed = {"from", "startWith", "connectFromField", "connectToField", "as"}
    if not isinstance(spec, dict) or not needed <= set(spec):
        raise location(40105, f"$graphLookup needs {', '.join(sorted(needed))}")
    if "maxDepth" in spec and not is_number(spec["maxDepth"]):
        raise location(40100, "maxDepth requires a numeric argument")
    foreign = around.read(spec["from"])
    if "restrictSearchWithMatch" in spec:
        foreign = run(foreign, [{"$match": spec["restrictSearchWithMatch"]}], around)
    return [
        with_value(document, split(spec["as"]), _reached(document, foreign, spec, around)) for document in documents
    ]


def _reached(document: Document, foreign: Documents, spec: Mapping[str, Any], around: Surroundings) -> Documents:
    start = evaluate(spec["startWith"], document, around.variables)
    frontier, found, depth = start if isinstance(start, list) else [start], [], 0
    left = list(foreign)
    while frontier and depth <= spec.get("maxDepth", depth):
        hits = [one for one in left if any(equal(value_at(one, spec["connectToField"]), value) for value in frontier)]
        left = [one for one in left if one not in hits]
        found += [with_value(one, [spec["depthField"]], depth) if "depthField" in spec else one for one in hits]
        frontier = [value_at(one, spec["connectFromField"]) for one in hits]
        frontier = [v for value in frontier for v in (value if isinstance(value, list) else [value])]
        depth += 1
    return copy_value(found)

"""The stages ``$lookup``, ``$unionWith``, ``$facet``, ``$graphLookup`` and ``$documents``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bson.int64 import Int64

from gmongo.testing.store.environment import Document, Documents, Environment, Finder, Stage, with_last, with_value
from gmongo.testing.store.errors import failed_to_parse, location
from gmongo.testing.store.expressions import (
    Expression,
    Scope,
    Variables,
    check_variable,
    compile_expression,
    path_parts,
    with_document,
)
from gmongo.testing.store.matching import compile_query
from gmongo.testing.store.operators import equality
from gmongo.testing.store.paths import joined_values, split, values_at
from gmongo.testing.store.values import MISSING, is_number, is_whole, key_of, whole
from gmongo.testing.unsupported import not_supported

CompilePipeline = Callable[[Any, Environment], Stage]
Let = Mapping[str, Expression]
_LOOKUP = frozenset({"from", "localField", "foreignField", "let", "pipeline", "as"})
_NOT_IN_FACETS = frozenset({"$facet", "$out", "$merge", "$geoNear", "$indexStats", "$collStats", "$documents",
                           "$search"})  # fmt: skip


def _option(name: str, spec: Any, option: str) -> str:
    value = spec.get(option)
    if type(value) is not str:
        raise failed_to_parse(f"{name} argument '{option}' must be a string, found {value!r}")
    return value


def lookup(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$lookup``."""
    if not isinstance(spec, dict):
        raise failed_to_parse("the $lookup stage specification must be an object")
    if set(spec) - _LOOKUP:
        raise failed_to_parse(f"unknown argument to $lookup: {(set(spec) - _LOOKUP).pop()}")
    if "as" not in spec:
        raise failed_to_parse("must specify 'as' field for a $lookup")
    by_fields = "localField" in spec or "foreignField" in spec
    if by_fields and not {"localField", "foreignField"} <= set(spec):
        raise failed_to_parse("$lookup requires both or neither of 'localField' and 'foreignField' to be specified")
    if not by_fields and "pipeline" not in spec:
        raise failed_to_parse(
            "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified"
        )
    if "let" in spec and "pipeline" not in spec:
        raise failed_to_parse("$lookup with a 'let' argument must also specify 'pipeline'")
    source, pipeline = _source("$lookup", spec, spec.get("pipeline", []), env)
    _check_sub_pipeline("$lookup", pipeline, 51047)
    let = _let(spec.get("let", {}), env.scope)
    run_inner = compile_pipeline(pipeline, env.within(let))
    into = path_parts(_option("$lookup", spec, "as"))
    join = _Join(spec, source, env) if by_fields else None
    put = with_last if env.leading else with_value

    def run(documents: Documents, variables: Variables) -> Documents:
        read: Callable[[Document], list[Document]] | None = None
        for document in documents:
            if read is None:
                read = _all_of(source) if join is None else join.reader()
            values = with_document(variables, document)
            inner = {**variables, **{name: part(values) for name, part in let.items()}}
            yield put(document, into, list(run_inner(read(document), inner)))

    return run


Source = Callable[[], "list[Document]"]


def _source(name: str, spec: Mapping[str, Any], pipeline: Any, env: Environment) -> tuple[Source, Any]:
    """Return a function that reads the documents of the other collection, and the pipeline for these documents.

    If the stage names no collection, the first stage of the pipeline is a ``$documents``. In this
    case, the function returns the documents of the ``$documents``.
    """
    collection = spec.get("from", spec.get("coll"))
    if collection is not None:
        if type(collection) is not str:
            raise not_supported("a join with another database", name)
        return lambda: env.read(collection).documents(), pipeline
    first = pipeline[0] if isinstance(pipeline, list) and pipeline else None
    if not isinstance(first, dict) or set(first) != {"$documents"}:
        raise failed_to_parse(f"{name} without a collection needs a pipeline that begins with $documents")
    made = documents_of(first["$documents"], env.scope)
    return lambda: made, pipeline[1:]


def documents_of(spec: Any, scope: Scope) -> list[Document]:
    """Return the documents of a ``$documents`` stage."""
    documents = compile_expression(spec, scope)({**dict.fromkeys(scope.names), "ROOT": {}, "CURRENT": {}})
    if not isinstance(documents, list):
        raise location(5858203, "an array is expected in $documents")
    if not all(isinstance(document, dict) for document in documents):
        raise location(40228, "an array of objects is expected in $documents")
    return documents


def _all_of(source: Source) -> Callable[[Document], list[Document]]:
    found = source()
    return lambda document: found


def _let(spec: Any, scope: Scope) -> Let:
    if not isinstance(spec, dict):
        raise failed_to_parse("$lookup argument 'let' must be an object")
    for name in spec:
        check_variable(name)
    return {name: compile_expression(part, scope) for name, part in spec.items()}


class _Join:
    """The join of a ``$lookup`` that has ``localField`` and ``foreignField``.

    :param spec: the specification of the stage.
    :param source: a function that reads all documents of the other collection.
    :param env: the context of the stage.
    """

    def __init__(self, spec: Mapping[str, Any], source: Source, env: Environment) -> None:
        self._local = path_parts(_option("$lookup", spec, "localField"))
        self._foreign = _option("$lookup", spec, "foreignField")
        path_parts(self._foreign)
        self._source, self._env = source, env
        self._from = spec.get("from")

    def reader(self) -> Callable[[Document], list[Document]]:
        """Return a function that returns, for a document, the matching documents of the other collection."""
        if self._from is None:
            made = list(enumerate(self._source()))
            return lambda document: self._joined(document, lambda value: made)
        find = self._env.read(self._from).finder(self._foreign, self._env.collation)
        return lambda document: self._joined(document, find)

    def _joined(self, document: Document, find: Finder) -> list[Document]:
        # If the document has no value at the path, the join compares null.
        values = list(joined_values(document, self._local)) or [None]
        found: dict[int, Document] = {}
        for value in values:
            found.update(_matching(find(value), self._foreign, value, self._env))
        return [found[number] for number in sorted(found)]


def _matching(
    documents: Iterable[tuple[int, Document]], path: str, value: Any, env: Environment
) -> Iterator[tuple[int, Document]]:
    """Yield the documents that have the value at the path.

    A regular expression only matches an equal regular expression.
    """
    parts, test = split(path), equality(value, env.collation)
    for number, document in env.pace.through(documents):
        for found in values_at(document, parts):
            if test(found) or (isinstance(found, list) and any(map(test, found))):
                yield number, document
                break


def _check_sub_pipeline(name: str, pipeline: Any, code: int) -> None:
    for stage in pipeline if isinstance(pipeline, list) else ():
        for inner in stage if isinstance(stage, dict) else ():
            if inner in ("$changeStream", "$merge", "$out"):
                raise location(code, f"{inner} is not allowed within a {name}'s sub-pipeline")


def union_with(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$unionWith``."""
    options: dict[str, Any] = {"coll": spec} if isinstance(spec, str) else spec
    if not isinstance(options, dict):
        raise failed_to_parse("the $unionWith stage specification must be an object or string")
    if set(options) - {"coll", "pipeline"}:
        raise location(
            40415, f"BSON field '$unionWith.{(set(options) - {'coll', 'pipeline'}).pop()}' is an unknown field."
        )
    source, pipeline = _source("$unionWith", options, options.get("pipeline", []), env)
    _check_sub_pipeline("$unionWith", pipeline, 31441)
    run_inner = compile_pipeline(pipeline, env)

    def run(documents: Documents, variables: Variables) -> Documents:
        yield from documents
        yield from run_inner(source(), variables)

    return run


def facet(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$facet``."""
    _check_facet(spec)
    for inner in _NOT_IN_FACETS & {name for pipeline in spec.values() for name in _stage_names(pipeline)}:
        raise location(40600, f"{inner} is not allowed to be used within a $facet stage")
    runs = {name: compile_pipeline(pipeline, env) for name, pipeline in spec.items()}

    def stage_of(documents: Documents, variables: Variables) -> Documents:
        found = list(documents)
        return [{name: list(run(found, variables)) for name, run in runs.items()}]

    return stage_of


def _check_facet(spec: Any) -> None:
    """Check the form of a ``$facet``, and of the ``$facet`` in its pipelines."""
    if not isinstance(spec, dict) or not spec:
        raise location(40169, "the $facet specification must be a non-empty object")
    if not all(isinstance(pipeline, list) for pipeline in spec.values()):
        raise location(40170, "arguments to $facet must be arrays")
    for name, pipeline in spec.items():
        if "." in name or name.startswith("$") or not name:
            raise location(16412, f"FieldPath field names may not be empty, contain '.' or start with '$': '{name}'")
        if not all(isinstance(stage, dict) and stage for stage in pipeline):
            raise location(40171, "elements of arrays in $facet spec must be non-empty objects")
        for stage in pipeline:
            if "$facet" in stage:
                _check_facet(stage["$facet"])


def _stage_names(pipeline: Any) -> Iterator[str]:
    """Yield the names of the stages of a pipeline, and of the pipelines in ``$lookup`` and ``$unionWith`` stages."""
    for stage in pipeline if isinstance(pipeline, list) else ():
        for name, spec in stage.items() if isinstance(stage, dict) else ():
            yield name
            if name in ("$lookup", "$unionWith") and isinstance(spec, dict):
                yield from _stage_names(spec.get("pipeline"))


_GRAPH = frozenset({"from", "startWith", "connectFromField", "connectToField", "as", "maxDepth", "depthField",
                    "restrictSearchWithMatch"})  # fmt: skip


def graph_lookup(spec: Any, env: Environment, _compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$graphLookup``."""
    if not isinstance(spec, dict):
        raise failed_to_parse("the $graphLookup stage specification must be an object")
    if set(spec) - _GRAPH:
        raise location(40104, f"Unknown argument to $graphLookup: {(set(spec) - _GRAPH).pop()}")
    _option("$graphLookup", spec, "from")
    if not {"startWith", "connectFromField", "connectToField", "as"} <= set(spec):
        raise location(40105, "$graphLookup requires 'as', 'startWith', 'connectFromField', and "
                       "'connectToField' to be specified.")  # fmt: skip
    for name in ("as", "connectFromField", "connectToField", "depthField"):
        if name in spec and type(spec[name]) is not str:
            raise location(40103, f"expected string as argument for {name}, found: {spec[name]!r}")
    depth = spec.get("maxDepth")
    if depth is not None and not is_number(depth):
        raise location(40100, f"maxDepth requires numeric argument, found {depth!r}")
    if depth is not None and whole(depth) < 0:
        raise location(40101, f"maxDepth requires a nonnegative argument, found: {depth}")
    if depth is not None and not is_whole(depth):
        raise location(40102, f"maxDepth could not be represented as a long long: {depth}")
    if not isinstance(spec.get("restrictSearchWithMatch", {}), dict):
        raise location(40185, "restrictSearchWithMatch must be an object")
    start = compile_expression(spec["startWith"], env.scope)
    match = compile_query(spec.get("restrictSearchWithMatch", {}), env.scope)
    into = path_parts(spec["as"])

    def run(documents: Documents, variables: Variables) -> Documents:
        find: Finder | None = None
        for document in documents:
            if find is None:
                find = env.read(spec["from"]).finder(spec["connectToField"], env.collation)
            first = start(with_document(variables, document))
            reached = _traverse(first, find, lambda one: match(one, variables), spec, env)
            yield with_value(document, into, reached)

    return run


def _has_null(document: Document, path: str) -> bool:
    """Return True if the document has a null at the path, and not only a missing value."""
    found = values_at(document, split(path))
    return any(value is None or (isinstance(value, list) and None in value) for value in found)


def _traverse(
    start: Any, find: Finder, allowed: Callable[[Document], bool], spec: Mapping[str, Any], env: Environment
) -> list[Document]:
    """Return all documents that a ``$graphLookup`` reaches from a start value.

    :param start: the value of ``startWith``.
    :param find: a function that finds documents by the value of ``connectToField``.
    :param allowed: a function that returns True if a document matches ``restrictSearchWithMatch``.
    :param spec: the specification of the stage.
    :param env: the context of the stage.
    """
    most = None if spec.get("maxDepth") is None else whole(spec["maxDepth"])
    depth_parts = path_parts(spec["depthField"]) if "depthField" in spec else None
    parts, target = path_parts(spec["connectFromField"]), spec["connectToField"]
    frontier = list(start) if isinstance(start, list) else [start] * (start is not MISSING)
    reached, searched, results, depth = set[Any](), set[Any](), list[Document](), 0
    while frontier and (most is None or depth <= most):
        following: list[Any] = []
        for value in env.pace.through(frontier):
            key = key_of(env.collation.folded(value))
            if key in searched:
                continue
            searched.add(key)
            for _, document in _matching(find(value), target, value, env):
                identity = key_of(document["_id"])
                if identity in reached or not allowed(document) or (value is None and not _has_null(document, target)):
                    continue
                reached.add(identity)
                results.append(document if depth_parts is None else with_value(document, depth_parts, Int64(depth)))
                following += joined_values(document, parts)
        frontier, depth = following, depth + 1
    return results

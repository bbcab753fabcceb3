"""The stages ``$lookup``, ``$unionWith``, ``$facet``, ``$graphLookup`` and ``$documents``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gmongo.testing.store.environment import Document, Documents, Environment, Finder, Stage, has_path, with_value
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import (
    Expression,
    Scope,
    Variables,
    check_field_name,
    check_variable,
    compile_expression,
    path_parts,
    with_document,
)
from gmongo.testing.store.operators import equality
from gmongo.testing.store.paths import joined_values, split, values_at
from gmongo.testing.unsupported import not_supported

CompilePipeline = Callable[[Any, Environment], Stage]
Let = Mapping[str, Expression]
_NOT_IN_FACETS = frozenset({"$facet", "$out", "$merge", "$geoNear", "$indexStats", "$collStats", "$documents",
                           "$search"})  # fmt: skip


def checked(name: str, spec: Any, required: str, optional: str = "") -> Mapping[str, Any]:
    """Check the names of the options of a stage, and return the options."""
    least = set(required.split())
    if not isinstance(spec, dict) or not least <= set(spec) <= least | set(optional.split()):
        raise malformed(name)
    return spec


def _option(name: str, spec: Any, option: str) -> str:
    if type(spec[option]) is not str:
        raise malformed(f"{name} with {option}")
    return str(spec[option])


def lookup(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$lookup``."""
    checked("$lookup", spec, "as", "from localField foreignField let pipeline")
    by_fields = "localField" in spec
    if ("foreignField" in spec) != by_fields or ("pipeline" not in spec and ("let" in spec or not by_fields)):
        raise malformed("$lookup")
    source, pipeline = _source("$lookup", spec, spec.get("pipeline", []), env)
    _check_sub_pipeline("$lookup", pipeline)
    let = _let(spec.get("let", {}), env.scope)
    run_inner = compile_pipeline(pipeline, env.within(let))
    into = path_parts(_option("$lookup", spec, "as"))
    join = _Join(spec, source, env) if by_fields else None

    def run(documents: Documents, variables: Variables) -> Documents:
        read: Callable[[Document], list[Document]] | None = None
        for document in documents:
            if read is None:
                read = _all_of(source) if join is None else join.reader()
            values = with_document(variables, document)
            inner = {**variables, **{name: part(values) for name, part in let.items()}}
            if has_path(document, into):
                raise not_supported("$lookup into an existing field")
            yield with_value(document, into, list(run_inner(read(document), inner)))

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
        raise malformed(name)
    made = documents_of(first["$documents"], env.scope)
    return lambda: made, pipeline[1:]


def documents_of(spec: Any, scope: Scope) -> list[Document]:
    """Return the documents of a ``$documents`` stage."""
    documents = compile_expression(spec, scope)({**dict.fromkeys(scope.names), "ROOT": {}, "CURRENT": {}})
    if not isinstance(documents, list) or not all(isinstance(document, dict) for document in documents):
        raise malformed("$documents")
    return documents


def _all_of(source: Source) -> Callable[[Document], list[Document]]:
    found = source()
    return lambda document: found


def _let(spec: Any, scope: Scope) -> Let:
    for name in checked("$lookup", spec, " ".join(spec)):
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


def _check_sub_pipeline(name: str, pipeline: Any) -> None:
    for stage in pipeline if isinstance(pipeline, list) else ():
        if isinstance(stage, dict) and not {"$changeStream", "$merge", "$out"}.isdisjoint(stage):
            raise malformed(f"{name} with a pipeline that writes or watches")


def union_with(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$unionWith``."""
    options = checked("$unionWith", {"coll": spec} if isinstance(spec, str) else spec, "", "coll pipeline")
    source, pipeline = _source("$unionWith", options, options.get("pipeline", []), env)
    _check_sub_pipeline("$unionWith", pipeline)
    run_inner = compile_pipeline(pipeline, env)

    def run(documents: Documents, variables: Variables) -> Documents:
        yield from documents
        yield from run_inner(source(), variables)

    return run


def facet(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$facet``."""
    if not isinstance(spec, dict) or not spec:
        raise malformed("$facet")
    for name, pipeline in spec.items():
        check_field_name(name)
        names = set(_stage_names(pipeline))
        if (
            not isinstance(pipeline, list)
            or not all(isinstance(stage, dict) for stage in pipeline)
            or names & _NOT_IN_FACETS
        ):
            raise malformed("$facet")
    runs = {name: compile_pipeline(pipeline, env) for name, pipeline in spec.items()}

    def stage_of(documents: Documents, variables: Variables) -> Documents:
        found = list(documents)
        return [{name: list(run(found, variables)) for name, run in runs.items()}]

    return stage_of


def _stage_names(pipeline: Any) -> Iterator[str]:
    """Yield the names of the stages of a pipeline, and of the pipelines in ``$lookup`` and ``$unionWith`` stages."""
    for stage in pipeline if isinstance(pipeline, list) else ():
        for name, spec in stage.items() if isinstance(stage, dict) else ():
            yield name
            if name in ("$lookup", "$unionWith") and isinstance(spec, dict):
                yield from _stage_names(spec.get("pipeline"))

"""The stages ``$lookup``, ``$unionWith``, ``$facet`` and ``$documents``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gmongo.testing.store.environment import Document, Documents, Environment, Stage, has_path, with_value
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import with_document
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Scope,
    Variables,
    check_field_name,
    check_variable,
    compile_expression,
    split_path,
)
from gmongo.testing.store.operators import equality
from gmongo.testing.store.paths import leaves_at, values_at
from gmongo.testing.store.values import MISSING, Key, key_of
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
    source, pipeline = _source("$lookup", spec, env), spec.get("pipeline", [])
    _check_sub_pipeline("$lookup", pipeline)
    let = _let(spec.get("let", {}), env.scope)
    run_inner = compile_pipeline(pipeline, env.within(let))
    into = split_path(_option("$lookup", spec, "as"))
    join = _join_by_fields(spec, source, env) if by_fields else None

    def run(documents: Documents, variables: Variables) -> Documents:
        read: Callable[[Document], list[Document]] | None = None
        for document in documents:
            if read is None:
                read = _all_of(source) if join is None else join()
            values = with_document(variables, document)
            inner = {**variables, **{name: part(values) for name, part in let.items()}}
            if has_path(document, into):
                raise not_supported("$lookup into an existing field")
            yield with_value(document, into, list(run_inner(read(document), inner)))

    return run


Source = Callable[[], "list[Document]"]


def _source(name: str, spec: Mapping[str, Any], env: Environment) -> Source:
    """Return a function that reads the documents of the other collection."""
    collection = spec.get("from", spec.get("coll"))
    if type(collection) is not str:
        raise not_supported("a join with another source", name)
    return lambda: env.read(collection)


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


def _join_by_fields(
    spec: Mapping[str, Any], source: Source, env: Environment
) -> Callable[[], Callable[[Document], list[Document]]]:
    """Compile a join by fields. The result reads the other collection, and returns a function of a document."""
    local, foreign = split_path(_option("$lookup", spec, "localField")), _option("$lookup", spec, "foreignField")
    split_path(foreign)

    def reader() -> Callable[[Document], list[Document]]:
        documents = source()
        find = _position_finder(documents, foreign, env)

        def joined(document: Document) -> list[Document]:
            # If the document has no value at the path, the join compares null.
            values = [part for one in values_at(document, local) for part in (one if isinstance(one, list) else [one])]
            present = [value for value in values if value is not MISSING] or [None]
            numbers = {number for value in present for number in find(value)}
            return [documents[number] for number in sorted(numbers)]

        return joined

    return reader


def _position_finder(documents: list[Document], path: str, env: Environment) -> Callable[[Any], Iterator[int]]:
    """Return a function that yields the positions of the documents that have a value at the path."""
    parts = path.split(".")
    found: dict[Key, dict[int, None]] = {}
    for number, document in enumerate(env.pace.through(documents)):
        for (value,) in leaves_at(document, [path]):
            key = key_of(None if value is MISSING else env.collation.folded(value))
            found.setdefault(key, {})[number] = None

    def find(value: Any) -> Iterator[int]:
        test = equality(value, env.collation)
        candidates: Iterable[int] = (
            range(len(documents)) if isinstance(value, list) else found.get(key_of(env.collation.folded(value)), ())
        )
        for number in env.pace.through(candidates):
            values = values_at(documents[number], parts)
            if any(test(one) or (isinstance(one, list) and any(map(test, one))) for one in values):
                yield number

    return find


def _check_sub_pipeline(name: str, pipeline: Any) -> None:
    for stage in pipeline if isinstance(pipeline, list) else ():
        if isinstance(stage, dict) and not {"$changeStream", "$merge", "$out"}.isdisjoint(stage):
            raise malformed(f"{name} with a pipeline that writes or watches")


def union_with(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$unionWith``."""
    options = checked("$unionWith", {"coll": spec} if isinstance(spec, str) else spec, "", "coll pipeline")
    source, pipeline = _source("$unionWith", options, env), options.get("pipeline", [])
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

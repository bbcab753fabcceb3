"""The stages ``$lookup``, ``$unionWith``, ``$facet`` and ``$documents``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gmongo.testing.store.environment import Document, Documents, Environment, Stage, has_path, set_value
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
from gmongo.testing.store.operators import create_equality_test
from gmongo.testing.store.paths import find_leaves, find_values
from gmongo.testing.store.values import MISSING, Key, make_key
from gmongo.testing.unsupported import not_supported

CompilePipeline = Callable[[Any, Environment], Stage]
CompiledVariables = Mapping[str, Expression]
_FORBIDDEN_IN_FACETS = frozenset({"$facet", "$out", "$merge", "$geoNear", "$indexStats", "$collStats", "$documents",
                           "$search"})  # fmt: skip


def check_options(name: str, spec: Any, required: str, optional: str = "") -> Mapping[str, Any]:
    """Check the names of the options of a stage, and return the options."""
    names = set(required.split())
    if not isinstance(spec, dict) or not names <= set(spec) <= names | set(optional.split()):
        raise malformed(name)
    return spec


def _parse_option(stage: str, spec: Any, option: str) -> str:
    if type(spec[option]) is not str:
        raise malformed(f"{stage} with {option}")
    return str(spec[option])


def compile_lookup(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$lookup``."""
    check_options("$lookup", spec, "as", "from localField foreignField let pipeline")
    has_fields = "localField" in spec
    if ("foreignField" in spec) != has_fields or ("pipeline" not in spec and ("let" in spec or not has_fields)):
        raise malformed("$lookup")
    source, pipeline = _create_source("$lookup", spec, env), spec.get("pipeline", [])
    _check_sub_pipeline("$lookup", pipeline)
    let = _compile_let(spec.get("let", {}), env.scope)
    run_inner = compile_pipeline(pipeline, env.add_names(let))
    target_path = split_path(_parse_option("$lookup", spec, "as"))
    create_join = _compile_field_join(spec, source, env) if has_fields else None

    def run(documents: Documents, variables: Variables) -> Documents:
        read: Callable[[Document], list[Document]] | None = None
        for document in documents:
            if read is None:
                read = _create_full_reader(source) if create_join is None else create_join()
            document_variables = with_document(variables, document)
            inner_variables = {**variables, **{name: compute(document_variables) for name, compute in let.items()}}
            if has_path(document, target_path):
                raise not_supported("$lookup into an existing field")
            yield set_value(document, target_path, list(run_inner(read(document), inner_variables)))

    return run


Source = Callable[[], "list[Document]"]


def _create_source(stage: str, spec: Mapping[str, Any], env: Environment) -> Source:
    """Return a function that reads the documents of the joined collection."""
    collection = spec.get("from", spec.get("coll"))
    if type(collection) is not str:
        raise not_supported("a join with a source other than a collection of the same database", stage)
    return lambda: env.read(collection)


def evaluate_documents(spec: Any, scope: Scope) -> list[Document]:
    """Return the documents of a ``$documents`` stage."""
    documents = compile_expression(spec, scope)({**dict.fromkeys(scope.names), "ROOT": {}, "CURRENT": {}})
    if not isinstance(documents, list) or not all(isinstance(document, dict) for document in documents):
        raise malformed("$documents")
    return documents


def _create_full_reader(source: Source) -> Callable[[Document], list[Document]]:
    documents = source()
    return lambda document: documents


def _compile_let(spec: Any, scope: Scope) -> CompiledVariables:
    for name in check_options("$lookup", spec, " ".join(spec)):
        check_variable(name)
    return {name: compile_expression(expression, scope) for name, expression in spec.items()}


def _compile_field_join(
    spec: Mapping[str, Any], source: Source, env: Environment
) -> Callable[[], Callable[[Document], list[Document]]]:
    """Return a function that reads the joined collection and returns the function ``find_joined``."""
    local_path, foreign_path = (
        split_path(_parse_option("$lookup", spec, "localField")),
        _parse_option("$lookup", spec, "foreignField"),
    )
    split_path(foreign_path)

    def create_join() -> Callable[[Document], list[Document]]:
        documents = source()
        find_positions = _create_position_finder(documents, foreign_path, env)

        def find_joined(document: Document) -> list[Document]:
            # If the document has no value at the path, the join compares null.
            values = [
                element
                for item in find_values(document, local_path)
                for element in (item if isinstance(item, list) else [item])
            ]
            present_values = [value for value in values if value is not MISSING] or [None]
            positions = {position for value in present_values for position in find_positions(value)}
            return [documents[position] for position in sorted(positions)]

        return find_joined

    return create_join


def _create_position_finder(documents: list[Document], path: str, env: Environment) -> Callable[[Any], Iterator[int]]:
    """Return a function that yields the positions of documents with a given value at the path."""
    parts = path.split(".")
    positions_by_key: dict[Key, dict[int, None]] = {}
    for position, document in enumerate(env.pace.iterate(documents)):
        for (value,) in find_leaves(document, [path]):
            key = make_key(None if value is MISSING else env.collation.apply(value))
            positions_by_key.setdefault(key, {})[position] = None

    def find_positions(value: Any) -> Iterator[int]:
        test = create_equality_test(value, env.collation)
        candidates: Iterable[int] = range(len(documents))
        if not isinstance(value, list):
            candidates = positions_by_key.get(make_key(env.collation.apply(value)), ())
        for position in env.pace.iterate(candidates):
            values = list(find_values(documents[position], parts))
            elements = (element for item in values if isinstance(item, list) for element in item)
            if any(map(test, values)) or any(map(test, elements)):
                yield position

    return find_positions


def _check_sub_pipeline(name: str, pipeline: Any) -> None:
    for stage in pipeline if isinstance(pipeline, list) else ():
        if isinstance(stage, dict) and not {"$changeStream", "$merge", "$out"}.isdisjoint(stage):
            raise malformed(f"{name} with a stage that writes or watches")


def compile_union_with(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$unionWith``."""
    options = check_options("$unionWith", {"coll": spec} if isinstance(spec, str) else spec, "", "coll pipeline")
    source, pipeline = _create_source("$unionWith", options, env), options.get("pipeline", [])
    _check_sub_pipeline("$unionWith", pipeline)
    run_inner = compile_pipeline(pipeline, env)

    def run(documents: Documents, variables: Variables) -> Documents:
        yield from documents
        yield from run_inner(source(), variables)

    return run


def compile_facet(spec: Any, env: Environment, compile_pipeline: CompilePipeline) -> Stage:
    """Compile ``$facet``."""
    if not isinstance(spec, dict) or not spec:
        raise malformed("$facet")
    for name, pipeline in spec.items():
        check_field_name(name)
        names = set(_find_stage_names(pipeline))
        if (
            not isinstance(pipeline, list)
            or not all(isinstance(stage, dict) for stage in pipeline)
            or names & _FORBIDDEN_IN_FACETS
        ):
            raise malformed("$facet")
    pipelines = {name: compile_pipeline(pipeline, env) for name, pipeline in spec.items()}

    def run_facet(documents: Documents, variables: Variables) -> Documents:
        inputs = list(documents)
        return [{name: list(run(inputs, variables)) for name, run in pipelines.items()}]

    return run_facet


def _find_stage_names(pipeline: Any) -> Iterator[str]:
    """Yield the stage names of a pipeline and of nested ``$lookup`` and ``$unionWith`` pipelines."""
    for stage in pipeline if isinstance(pipeline, list) else ():
        for name, spec in stage.items() if isinstance(stage, dict) else ():
            yield name
            if name in ("$lookup", "$unionWith") and isinstance(spec, dict):
                yield from _find_stage_names(spec.get("pipeline"))

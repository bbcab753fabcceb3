"""Select the records that match a query, and read the documents of collections and views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.access import Access
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.environment import Environment
from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.index import Index
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.planning import is_point, plan_of
from gmongo.testing.store.stages import compile_pipeline
from gmongo.testing.store.text_search import Score, TextSearch, search_in
from gmongo.testing.store.values import Key
from gmongo.testing.unsupported import not_supported

Found = Iterable[tuple[Key, Record]]
MAX_VIEW_DEPTH = 20


def select(
    access: Access,
    collection: Collection,
    query: Any,
    collation: Collation,
    variables: Mapping[str, Any],
    hint: Any = None,
    pace: Pace | None = None,
    to_write: bool = False,
) -> Iterator[tuple[Key, Record]]:
    """Return an iterator of the records that match a query, in natural order, with their keys.

    The function checks the query before the function returns the iterator. During the iteration,
    other greenlets can run and change records.

    :param to_write: True to wait for the transactions that have locked matching records.
    """
    match = compile_filter(query, variables, collation, text_index(collection))
    index = hinted_index(collection, hint)
    records = access.records(collection)
    paced = pace or Pace()

    def matching_record(key: Key) -> Record | None:
        record = records.get(key)
        if record is None or not match(record.document) or (index is not None and not index.contains(record.document)):
            return None
        return record

    def run() -> Iterator[tuple[Key, Record]]:
        for key in paced.through(_keys(access, collection, query, collation, paced)):
            record = matching_record(key)
            if record is not None and to_write and access.await_free(collection, key, paced):
                record = matching_record(key)  # the transaction may have changed the record
            if record is not None:
                yield key, record

    return run()


def _keys(access: Access, collection: Collection, query: Any, collation: Collation, pace: Pace) -> Iterable[Key]:
    """Return the keys of all records that may match the query, in natural order. Some of the records may not match."""
    identity = query.get("_id")
    if is_point(identity, collection.collation, collation) and not is_operators(identity):
        return (collection.key(identity),)  # a fast path for the most frequent query
    records, plan = access.records(collection), plan_of(collection.indexes.values(), query, collation)
    if plan is None:
        return list(records)
    found = dict.fromkeys(pace.through(plan.keys()))
    for key in access.unindexed(collection):
        found[key] = None
    if len(found) < 2:
        return list(found)
    return pace.in_order((key for key in found if key in records), lambda key: records[key].number)


def text_index(collection: Collection | None) -> Document | None:
    """Return the options and the other fields of the text index of a collection, or None without a text index."""
    indexes = () if collection is None else collection.indexes.values()
    index = next((index for index in indexes if "_fts" in index.keys), None)
    if index is None:
        return None
    return {**index.options, **{path: kind for path, kind in index.keys.items() if path not in ("_fts", "_ftsx")}}


def text_score_function(collection: Collection | None, query: Any) -> Score | None:
    """Return a function that returns the text score of a document. Return None if the query has no ``$text``."""
    spec = search_in(query)
    return None if spec is None else TextSearch(spec, text_index(collection)).score


def hinted_index(collection: Collection, hint: Any) -> Index | None:
    """Return the index that the hint names, or None if there is no hint or the hint is `$natural`."""
    if hint is None or hint == {}:
        return None
    if isinstance(hint, dict) and "$natural" in hint:
        return None
    for index in collection.indexes.values():
        if index.options.get("hidden"):
            continue
        if index.name == hint or (isinstance(hint, dict) and list(index.keys.items()) == list(hint.items())):
            return index
    raise bad_value(f"error processing query: ns={collection.namespace}: planner returned error :: caused by :: hint "
                    "provided does not correspond to an existing index")  # fmt: skip


def in_order(
    found: Found,
    order: Mapping[str, Any] | None,
    collation: Collation,
    pace: Pace,
    score: Score | None = None,
) -> Found:
    """Return the records in the order of a sort specification."""
    if not order:
        return found
    return compile_sort(order, collation, pace, score)(found, lambda item: item[1].document)


def documents_of(
    access: Access, database: str, name: str, variables: Mapping[str, Any], pace: Pace, depth: int = 0
) -> list[Document]:
    """Return all documents of a collection or view. The caller must not change the documents."""
    collection = access.find(database, name)
    if collection is None:
        return []
    if collection.kind == "timeseries":
        raise not_supported("a time series", name)
    if not collection.is_view:
        return [record.document for record in access.records(collection).values()]
    if depth >= MAX_VIEW_DEPTH:
        raise error(165, f"View depth limit exceeded by {collection.namespace}")
    documents = documents_of(access, database, collection.options["viewOn"], variables, pace, depth + 1)
    env = environment(access, database, variables, collection.collation, pace, depth + 1)
    run = compile_pipeline(collection.options.get("pipeline", []), env)
    return list(run(documents, variables))


def environment(
    access: Access, database: str, variables: Mapping[str, Any], collation: Collation, pace: Pace, depth: int = 0
) -> Environment:
    """Return the context in which the stages of a pipeline are compiled."""
    return Environment.for_variables(
        variables, collation, read=lambda name: documents_of(access, database, name, variables, pace, depth), pace=pace
    )

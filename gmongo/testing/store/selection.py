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
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.planning import has_single_key, select_plan
from gmongo.testing.store.stages import compile_pipeline
from gmongo.testing.store.text_search import Score, TextSearch, find_search
from gmongo.testing.store.values import Key
from gmongo.testing.unsupported import not_supported

Matches = Iterable[tuple[Key, Record]]
MAX_VIEW_DEPTH = 20


def select(
    access: Access,
    collection: Collection,
    query: Any,
    collation: Collation,
    variables: Mapping[str, Any],
    hint: Any = None,
    pace: Pace | None = None,
    for_write: bool = False,
) -> Iterator[tuple[Key, Record]]:
    """Return an iterator of pairs: the key and the record of each match of a query, in natural order.

    A malformed query raises an error before the iteration starts. During the iteration, other
    greenlets can run and change records.

    :param for_write: True to wait for the transactions that have locked matching records.
    """
    match = compile_filter(query, variables, collation, find_text_index_options(collection))
    index = find_hint_index(collection, hint)
    records = access.records(collection)
    used_pace = pace or Pace()

    def find_match(key: Key) -> Record | None:
        record = records.get(key)
        if record is None or not match(record.document) or (index is not None and not index.contains(record.document)):
            return None
        return record

    def find_matches() -> Iterator[tuple[Key, Record]]:
        for key in used_pace.iterate(_find_keys(access, collection, query, collation, used_pace)):
            record = find_match(key)
            if record is not None and for_write and access.await_unlocked(collection, key, used_pace):
                record = find_match(key)  # the transaction may have changed the record
            if record is not None:
                yield key, record

    return find_matches()


def _find_keys(access: Access, collection: Collection, query: Any, collation: Collation, pace: Pace) -> Iterable[Key]:
    """Return the keys of all records that may match the query, in natural order."""
    id_condition = query.get("_id")
    if has_single_key(id_condition, collection.collation, collation) and not has_operators(id_condition):
        return (collection.key(id_condition),)  # a fast path for queries by _id
    records, plan = access.records(collection), select_plan(collection.indexes.values(), query, collation)
    if plan is None:
        return list(records)
    keys = dict.fromkeys(pace.iterate(plan.keys()))
    for key in access.find_unindexed_keys(collection):
        keys[key] = None
    if len(keys) < 2:
        return list(keys)
    return pace.sort((key for key in keys if key in records), lambda key: records[key].number)


def find_text_index_options(collection: Collection | None) -> Document | None:
    """Return one document with the options and the non-text fields of the text index, or None."""
    indexes = () if collection is None else collection.indexes.values()
    index = next((index for index in indexes if "_fts" in index.keys), None)
    if index is None:
        return None
    return {**index.options, **{path: kind for path, kind in index.keys.items() if path not in ("_fts", "_ftsx")}}


def create_scorer(collection: Collection | None, query: Any) -> Score | None:
    """Return a function that returns the text score of a document. Return None if the query has no ``$text``."""
    spec = find_search(query)
    return None if spec is None else TextSearch(spec, find_text_index_options(collection)).score


def find_hint_index(collection: Collection, hint: Any) -> Index | None:
    """Return the index of the hint. Return None without a hint, or for the hint ``$natural``."""
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


def sort_records(
    records: Matches, order: Mapping[str, Any] | None, collation: Collation, pace: Pace, score: Score | None = None
) -> Matches:
    """Return the records in the order of a sort specification."""
    if not order:
        return records
    return compile_sort(order, collation, pace, score)(records, lambda item: item[1].document)


def read_documents(
    access: Access, database: str, name: str, variables: Mapping[str, Any], pace: Pace, depth: int = 0
) -> list[Document]:
    """Return all documents of a collection or view. The caller must not change the documents."""
    collection = access.find_collection(database, name)
    if collection is None:
        return []
    if collection.kind == "timeseries":
        raise not_supported("a time series", name)
    if not collection.is_view:
        return [record.document for record in access.records(collection).values()]
    if depth >= MAX_VIEW_DEPTH:
        raise error(165, f"View depth limit exceeded by {collection.namespace}")
    documents = read_documents(access, database, collection.options["viewOn"], variables, pace, depth + 1)
    env = create_env(access, database, variables, collection.collation, pace, depth + 1)
    run = compile_pipeline(collection.options.get("pipeline", []), env)
    return list(run(documents, variables))


def create_env(
    access: Access, database: str, variables: Mapping[str, Any], collation: Collation, pace: Pace, depth: int = 0
) -> Environment:
    """Return the context in which the stages of a pipeline are compiled."""
    return Environment.from_variables(
        variables,
        collation,
        read=lambda name: read_documents(access, database, name, variables, pace, depth),
        pace=pace,
    )

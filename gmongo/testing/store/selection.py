"""Finding the records that a query selects, and the documents of collections and views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.access import Access
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.data import Collection, Document, Index, Record
from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.matching import is_operators
from gmongo.testing.store.ordering import sorted_by
from gmongo.testing.store.stages import run
from gmongo.testing.store.surroundings import Surroundings
from gmongo.testing.store.values import Key, key_of

Found = list[tuple[Key, Record]]
# A view of a view of a view ... ends here.
MAX_VIEW_DEPTH = 20


def select(
    access: Access,
    collection: Collection,
    query: Any,
    collation: Collation,
    variables: Mapping[str, Any],
    hint: Any = None,
) -> Found:
    """The records that the query selects, in natural order.

    :raises CommandError: for a malformed query, or a hint of an index that does not exist.
    """
    match = collation.compile_filter(query, variables)
    index = hinted_index(collection, hint)
    records = access.records(collection)
    identity = query.get("_id")
    if "_id" in query and collation.strength is None and not is_operators(identity) and _is_plain(identity):
        key = key_of(identity)
        alone = len(query) == 1
        return [(key, records[key])] if key in records and (alone or match(records[key].document)) else []
    return [
        (key, record)
        for key, record in list(records.items())
        if match(record.document) and (index is None or _is_indexed(index, record.document))
    ]


def _is_plain(identity: Any) -> bool:
    return not isinstance(identity, list) and not hasattr(identity, "pattern") and identity is not None


def _is_indexed(index: Index, document: Document) -> bool:
    sparse = "sparse" in index.options or "partialFilterExpression" in index.options
    return not sparse or next(index.entries(document), None) is not None


def hinted_index(collection: Collection, hint: Any) -> Index | None:
    """The index that a hint names; None if it names none, or the natural order.

    :raises CommandError: 2, if there is no such index.
    """
    if not hint:
        return None
    if isinstance(hint, dict) and "$natural" in hint:
        return None
    for index in collection.indexes.values():
        if index.name == hint or (isinstance(hint, dict) and list(index.keys.items()) == list(hint.items())):
            return index
    raise bad_value(
        f"error processing query: ns={collection.namespace}: planner returned error :: caused by :: "
        "hint provided does not correspond to an existing index"
    )


def in_order(found: Found, order: Mapping[str, Any] | None, collation: Collation) -> Found:
    """The records, sorted."""
    if not order:
        return found
    return sorted_by(found, order, lambda item: collation.folded(item[1].document))


def documents_of(
    access: Access, database: str, name: str, variables: Mapping[str, Any], depth: int = 0
) -> list[Document]:
    """All documents of a collection or view; none if it does not exist. They are not to be changed.

    :raises CommandError: 165, if views depend on each other too deeply.
    """
    collection = access.find(database, name)
    if collection is None:
        return []
    if not collection.is_view:
        return [record.document for record in access.records(collection).values()]
    if depth >= MAX_VIEW_DEPTH:
        raise CommandError(165, "ViewDepthLimitExceeded", f"View depth limit exceeded by {collection.namespace}")
    documents = documents_of(access, database, collection.options["viewOn"], variables, depth + 1)
    around = surroundings(access, database, variables, Collation.of(collection.options.get("collation")))
    return run(documents, collection.options.get("pipeline", []), around)


def surroundings(access: Access, database: str, variables: Mapping[str, Any], collation: Collation) -> Surroundings:
    """What the stages of a pipeline over a database know."""
    return Surroundings(variables, lambda name: documents_of(access, database, name, variables), collation)

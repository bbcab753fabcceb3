"""The commands ``find``, ``count`` and ``distinct``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from bson.int64 import Int64

from gmongo.testing.command import error
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import CommandContext
from gmongo.testing.store.creation import check_find_of_view
from gmongo.testing.store.cursors import Cursor, TailingCursor
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.errors import bad_value, failed_to_parse, malformed
from gmongo.testing.store.index import Index
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.paths import find_leaves, select_child
from gmongo.testing.store.planning import find_sorting_index, select_plan
from gmongo.testing.store.projection import compile_projection
from gmongo.testing.store.replies import open_cursor, parse_batch_size
from gmongo.testing.store.selection import Matches, create_scorer, find_hint_index, read_documents, select, sort_records
from gmongo.testing.store.values import MISSING, compare, make_key, to_long
from gmongo.testing.unsupported import not_supported


def find(context: CommandContext) -> Document:
    """Execute ``find``."""
    body, collection = context.body, context.collection()
    size = parse_batch_size(body)
    if body.get("awaitData") and not body.get("tailable"):
        raise failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'")
    if body.get("tailable") and collection is not None:
        return open_cursor(context, _create_tailing_cursor(context, collection), size)
    if collection is not None and collection.kind == "timeseries" and not body.get("sort"):
        raise not_supported("a time series", "find without sort")
    documents, limit_reached = run_find(context, collection)
    cursor = Cursor(context.namespace, documents, limit_reached)
    cursor.no_timeout = bool(body.get("noCursorTimeout"))
    return open_cursor(context, cursor, size, is_single=bool(body.get("singleBatch")) or collection is None)


def _create_tailing_cursor(context: CommandContext, collection: Collection) -> TailingCursor:
    if collection.is_view:
        check_find_of_view(context.body)
    if not collection.is_capped:
        raise bad_value(f"error processing query: ns={collection.namespace}: tailable cursor requested on non capped "
                        "collection")  # fmt: skip
    body = context.body
    order = body.get("sort") or {}
    if order and list(order.items()) != [("$natural", 1)]:
        raise bad_value("cannot use tailable option with a sort other than {$natural: 1}")
    match = compile_filter(body.get("filter") or {}, context.variables, context.collation(collection))
    project = compile_projection(body.get("projection"), body.get("filter") or {}, context.variables)
    return TailingCursor(collection, match, project, bool(body.get("awaitData")), abs(int(body.get("limit") or 0)))


def run_find(context: CommandContext, collection: Collection | None) -> tuple[list[Document], bool]:
    """Return two values: the results of a ``find``, and True if their number equals the limit."""
    body, variables = context.body, context.variables
    query = body.get("filter") or {}
    if collection is not None and collection.is_view:
        check_find_of_view(body)
    score = create_scorer(collection, query)
    if score is not None and (body.get("hint") or "$natural" in (body.get("sort") or {})):
        raise bad_value("text expression not allowed with a hint or a natural order")
    if score is not None and not body.get("sort"):
        raise not_supported("a text search beyond plain English words", "without a sort")
    project = compile_projection(body.get("projection"), query, variables, score)
    collation = context.collation(collection)
    records = find_matches(context, collection, query, collation)
    skip, limit = to_long(body.get("skip") or 0), abs(to_long(body.get("limit") or 0))
    max_count = skip + limit if limit else None
    if collection is not None and (body.get("min") or body.get("max")):
        index = _require_hinted_index(collection, body)
        records = sort_records(_select_within_bounds(index, records, body), index.keys, index.collation, context.pace)
    records = sort_records(records, body.get("sort"), collation, context.pace, score)
    selected = islice(records, skip, None if max_count is None else min(max_count, sys.maxsize))
    documents = [_create_result(context, collection, record, project) for _, record in context.pace.iterate(selected)]
    return documents, bool(limit) and len(documents) == limit


def find_matches(context: CommandContext, collection: Collection | None, query: Any, collation: Collation) -> Matches:
    """Return the records that match a query. For a view, create records of the matching documents."""
    variables = context.variables
    if collection is not None and not collection.is_view:
        return select(context.access, collection, query, collation, variables, context.body.get("hint"), context.pace)
    match = compile_filter(query, variables, collation)
    documents = read_documents(context.access, context.database, context.collection_name, variables, context.pace)
    numbered_documents = enumerate(context.pace.iterate(documents), 1)
    return [((number,), Record(number, item)) for number, item in numbered_documents if match(item)]


def _create_result(context: CommandContext, collection: Collection | None, record: Record, project: Any) -> Document:
    body = context.body
    if body.get("returnKey"):
        return _find_key_values(context, collection, record)  # returnKey overrides the projection
    document: Document = project(record.document)
    if body.get("showRecordId"):
        document = {**document, "$recordId": Int64(record.number)}
    return document


def _find_key_values(context: CommandContext, collection: Collection | None, record: Record) -> Document:
    """Return the indexed values for a ``find`` with ``returnKey``, or ``{}`` without an index."""
    index, order = find_used_index(context, collection, context.body.get("filter") or {}), context.body.get("sort")
    if order and (collection is None or find_sorting_index(collection.indexes.values(), order) is not index):
        raise not_supported("a sort with returnKey")
    if index is None:
        return {}
    values = find_leaves(record.document, list(index.keys))[0]
    return {path: None if value is MISSING else value for path, value in zip(index.keys, values, strict=True)}


def find_used_index(context: CommandContext, collection: Collection | None, query: Any) -> Index | None:
    """Return the index that a query uses. Return None if the query scans the collection."""
    hint = context.body.get("hint")
    if collection is None or collection.is_view or (isinstance(hint, dict) and "$natural" in hint):
        return None
    hinted_index = find_hint_index(collection, hint)
    if hinted_index is not None:
        return hinted_index
    plan = select_plan(collection.indexes.values(), query, context.collation(collection))
    if plan is not None:
        return plan.index
    return find_sorting_index(collection.indexes.values(), context.body.get("sort") or {})


def _require_hinted_index(collection: Collection | None, body: Document) -> Index:
    """Return the hinted index of a ``find`` with ``min`` or ``max``. Require the hint."""
    index = find_hint_index(collection, body.get("hint")) if collection else None
    bounds = [bound for bound in (body.get("min"), body.get("max")) if bound]
    if index is None or any(list(bound) != list(index.keys) for bound in bounds):
        raise malformed("min or max")
    return index


def _select_within_bounds(index: Index, records: Matches, body: Document) -> Matches:
    low, high = body.get("min"), body.get("max")
    return [
        (key, record)
        for key, record in records
        if (not low or _compare_with_bound(record.document, low, index.keys) >= 0)
        and (not high or _compare_with_bound(record.document, high, index.keys) < 0)
    ]


def _compare_with_bound(document: Document, bound: Document, keys: Any) -> int:
    for path, value in bound.items():
        order = compare(find_leaves(document, [path])[0][0], value) * (1 if keys[path] == 1 else -1)
        if order:
            return order
    return 0


def count(context: CommandContext) -> Document:
    """Execute ``count``."""
    body, collection = context.body, context.collection()
    matches = find_matches(context, collection, body.get("query") or {}, context.collation(collection))
    skip, limit = min(to_long(body.get("skip") or 0), sys.maxsize), abs(to_long(body.get("limit") or 0))
    max_count = min(skip + limit, sys.maxsize) if limit else None
    reply: Document = {"n": sum(1 for _ in islice(matches, skip, max_count))}
    return _adapt_reply_to_view(reply) if collection is not None and collection.is_view else reply


def distinct(context: CommandContext) -> Document:
    """Execute ``distinct``."""
    body, collection = context.body, context.collection()
    collation = context.collation(collection)
    parts = body["key"].split(".")
    if any(part.startswith("$") for part in parts):
        raise error(16410, "FieldPath field names may not start with '$'.")
    values_by_key: dict[Any, Any] = {}
    for _, record in find_matches(context, collection, body.get("query") or {}, collation):
        for value in _find_distinct_values(record.document, parts):
            values_by_key.setdefault(make_key(collation.apply(value)), value)
    reply: Document = {"values": [values_by_key[key] for key in context.pace.sort(values_by_key, lambda key: key)]}
    if context.snapshot is not None:
        reply["atClusterTime"] = context.snapshot
    return _adapt_reply_to_view(reply) if collection is not None and collection.is_view else reply


def _find_distinct_values(value: Any, parts: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path. A number in the path selects an element of an array."""
    if not parts:
        yield from value if isinstance(value, list) else () if value is MISSING else (value,)
    elif isinstance(value, list) and not parts[0].isdigit():
        for element in value:
            if isinstance(element, dict):
                yield from _find_distinct_values(element, parts)
    else:
        yield from _find_distinct_values(select_child(value, parts[0]), parts[1:])


def _adapt_reply_to_view(reply: Document) -> Document:
    """Add the field ``ok`` as an integer, because a server executes a command on a view as an aggregation."""
    return {**reply, "ok": 1}

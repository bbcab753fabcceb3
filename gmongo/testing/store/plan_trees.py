"""The stages of a plan, as ``explain`` shows them: from the result down to the collection or an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bson.max_key import MaxKey
from bson.min_key import MinKey

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import Context
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.index import Index
from gmongo.testing.store.index_bounds import description, intervals_of, is_bounded
from gmongo.testing.store.matching import Match, compile_filter
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.planning import conditions_of, plan_of, sorting_index
from gmongo.testing.store.selection import hinted_index, text_index
from gmongo.testing.store.values import is_number

_MAX_MEMORY = 100 * 1024 * 1024
# The order in which conditions are shown.
_OPERATORS = ("$size", "$eq", "$lte", "$lt", "$gt", "$gte", "$regex", "$mod", "$exists", "$in")


@dataclass
class Node:
    """A stage.

    :param fields: what is said of it, in each verbosity.
    :param returned: how many results it gave.
    :param counters: what else is said of its execution.
    """

    stage: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    returned: int = 0
    counters: Mapping[str, Any] = field(default_factory=dict)
    inner: Node | None = None

    def planned(self) -> Document:
        """As ``winningPlan`` shows it."""
        return {"stage": self.stage, **self.fields, **({"inputStage": self.inner.planned()} if self.inner else {})}

    def executed(self) -> Document:
        """As ``executionStages`` shows it."""
        works = max(self.returned, *(value for value in (self.counters.get("keysExamined", 0),
                                                         self.counters.get("docsExamined", 0)))) + 1  # fmt: skip
        return {
            "stage": self.stage,
            "nReturned": self.returned,
            "executionTimeMillisEstimate": 0,
            "works": works,
            "advanced": self.returned,
            "needTime": works - self.returned - 1,
            "needYield": 0,
            "saveState": 0,
            "restoreState": 0,
            "isEOF": 1,
            **self.fields,
            **self.counters,
            **({"inputStage": self.inner.executed()} if self.inner else {}),
        }

    def total(self, counter: str) -> int:
        """A counter of the stage and all below it."""
        return int(self.counters.get(counter, 0)) + (self.inner.total(counter) if self.inner else 0)


@dataclass
class Query:
    """What a command asks of a collection."""

    context: Context
    collection: Collection | None
    query: Document
    sort: Document = field(default_factory=dict)
    projection: Document = field(default_factory=dict)
    skip: int = 0
    limit: int = 0

    @property
    def collation(self) -> Collation:
        """How strings compare."""
        return self.context.collation(self.collection)

    @cached_property
    def documents(self) -> list[Document]:
        """Those of the collection."""
        if self.collection is None or self.collection.is_view:
            return []
        records = self.context.access.records(self.collection)
        return [record.document for record in self.context.pace.through(list(records.values()))]

    def _chosen(self, documents: list[Document]) -> list[Document]:
        return [document for document in self.context.pace.through(documents) if self._matches(document)]

    def scan(self) -> Node:
        """The stages that find the documents: those of an index, or of the whole collection."""
        if self.collection is None:
            return Node("EOF", {"type": "nonExistentNamespace"})
        index = self._index()
        if index is None:
            return self._collection_scan()
        backwards = self._is_backwards(index)
        fields = description(index, self.context.pace.through(self.documents), self.query, self.collation, backwards)
        entered, rest = self._entered(index), self.residual(index)
        found, looked = self._until_limit(self._chosen(entered), entered, index)
        number = self._entries(index) if looked is entered and index.multikey else len(looked)
        keys = Node("IXSCAN", fields, number, {"keysExamined": number})
        if self._is_covered(index, fields["isMultiKey"]):
            return keys
        return Node("FETCH", {"filter": normal(rest)} if rest else {}, len(found), {"docsExamined": len(looked)}, keys)

    def _entries(self, index: Index) -> int:
        """How many entries of a multikey index are within the bounds."""
        plan = plan_of([index], self.query, self.collation)
        return sum(1 for _ in self.context.pace.through(plan.keys() if plan is not None else index.between(())))

    def tree(self) -> Node:
        """All stages of a ``find``, or of what a write finds."""
        if self.collection is not None and self._is_by_identity(self.collection):
            return self._by_identity()
        node, index = self.scan(), None if self.collection is None else self._index()
        if self.collection is None:
            return node
        sorts = bool(self.sort) and (index is None or not self.is_sorted_by(index))
        if sorts:
            limited = {"limitAmount": self.skip + self.limit} if self.limit else {}
            fields = {"sortPattern": self.sort, "memLimit": _MAX_MEMORY, **limited, "type": "simple"}
            returned = min(node.returned, self.skip + self.limit) if self.limit else node.returned
            node = Node("SORT", fields, returned, inner=node)
        if self.skip:
            node = Node("SKIP", {"skipAmount": self.skip}, max(0, node.returned - self.skip), inner=node)
        if self.projection:
            is_covered = index is not None and self._is_covered(index, index.multikey)
            node = Node(_projection(self.projection, is_covered), self._shown("transformBy"), node.returned, inner=node)
        if self.limit and not sorts:
            node = Node("LIMIT", {"limitAmount": self.limit}, min(node.returned, self.limit), inner=node)
        return node

    def _shown(self, name: str) -> Document:
        return {name: self.projection} if self.projection else {}

    def _is_by_identity(self, collection: Collection) -> bool:
        wanted = self.query.get("_id")
        if len(self.query) != 1 or wanted is None or isinstance(wanted, list) or is_operators(wanted):
            return False
        same = self.collation == collection.collation
        return same and not (self.skip or self.context.body.get("hint") or collection.is_view)

    def _by_identity(self) -> Node:
        found = len(self._chosen(self.documents))
        counters = {"keysExamined": found, "docsExamined": found}
        if self.context.state.version >= (8, 0):
            index = {"keyPattern": "{ _id: 1 }", "indexName": "_id_", **self._shown("projection")}
            return Node("EXPRESS_IXSCAN", index, found, counters)
        node = Node("IDHACK", {}, found, counters)
        return Node("PROJECTION_SIMPLE", self._shown("transformBy"), found, inner=node) if self.projection else node

    def _index(self) -> Index | None:
        assert self.collection is not None
        if self.collection.is_view:
            return None
        hint = self.context.body.get("hint")
        hinted = hinted_index(self.collection, hint)
        if hinted is not None or hint:
            return hinted
        plan = plan_of(self.collection.indexes.values(), self.query, self.collation)
        return plan.index if plan is not None else sorting_index(self.collection.indexes.values(), self.sort)

    def residual(self, index: Index) -> list[tuple[str, str, Any]]:
        """The conditions that the bounds of the index do not answer."""
        return [
            (path, name, operand)
            for path, name, operand in _flat(self.query)
            if not is_bounded(index, path, name, operand, self.collation)
        ]

    def is_sorted_by(self, index: Index) -> bool:
        """Whether the entries of the index are in the order that is asked for, behind fields with one value."""
        fixed = {path for path, name, _ in _flat(self.query) if name == "$eq"}
        wanted = [path for path in self.sort if path not in fixed]
        left = [path for path in index.keys if path not in fixed][: len(wanted)]
        if left != wanted:
            return False
        return len({index.keys[path] == self.sort[path] for path in left if is_number(index.keys[path])}) <= 1

    def _is_backwards(self, index: Index) -> bool:
        return (
            bool(self.sort)
            and self.is_sorted_by(index)
            and any(path in index.keys and index.keys[path] != direction for path, direction in self.sort.items())
        )

    def _is_covered(self, index: Index, is_multikey: bool) -> bool:
        """Whether the entries of the index have all that is asked for."""
        included = {path for path, one in self.projection.items() if one is True or (is_number(one) and one)}
        excluded = set(self.projection) - included
        if not included or excluded - {"_id"} or is_multikey or self.residual(index):
            return False
        return included | (set() if "_id" in excluded else {"_id"}) <= set(index.keys)

    @cached_property
    def _matches(self) -> Match:
        text = text_index(self.collection)
        options = None if text is None else text.options
        return compile_filter(self.query, self.context.variables, self.collation, options)

    def _entered(self, index: Index) -> list[Document]:
        """The documents whose entries are within the bounds; several times, if they have several entries."""
        bounded: dict[str, Document] = {}
        for path, name, operand in _flat(self.query):
            if is_bounded(index, path, name, operand, self.collation):
                bounded.setdefault(path, {})[name] = operand
        match = compile_filter(bounded, collation=self.collation)
        within = self.context.pace.through(self.documents)
        return [document for document in within if match(document) and index.holds(document)]

    def _collection_scan(self) -> Node:
        found, looked = self._until_limit(self._chosen(self.documents), self.documents, None)
        filtered = {"filter": normal(list(_flat(self.query)))} if self.query else {}
        return Node("COLLSCAN", {**filtered, "direction": "forward"}, len(found), {"docsExamined": len(looked)})

    def _until_limit(
        self, found: list[Document], looked: list[Document], index: Index | None
    ) -> tuple[list[Document], list[Document]]:
        """What is looked at until there are enough results, unless all have to be sorted."""
        most = self.skip + self.limit
        blocked = self.sort and (index is None or not self.is_sorted_by(index))
        if not self.limit or blocked or len(found) < most:
            return found, looked
        paced = self.context.pace.through(looked)
        last = next(place for place, one in enumerate(paced) if one is found[most - 1])
        return found[:most], looked[: last + 1]


def count_tree(query: Query, counted: int) -> Node:
    """The stages of a ``count``."""
    skipped = {"nCounted": counted, "nSkipped": query.skip}
    if query.collection is not None and not query.query and not query.context.body.get("hint"):
        return Node("RECORD_STORE_FAST_COUNT", {}, 0, skipped)
    node = query.scan()
    scan = node.inner if node.stage == "FETCH" and "filter" not in node.fields else None
    if scan is not None and len(intervals(query, scan)) == 1:
        fields = {**scan.fields, "indexBounds": _range(query, scan)}
        del fields["direction"]
        node = Node("COUNT_SCAN", fields, scan.returned, {"keysExamined": scan.returned + 1})
    return Node("COUNT", {}, 0, skipped, node)


def intervals(query: Query, scan: Node) -> list[Any]:
    """The intervals of the first field of an index scan."""
    bounds: list[Any] = next(iter(scan.fields["indexBounds"].values()))
    return bounds


def _range(query: Query, scan: Node) -> Document:
    """The bounds of a scan that only counts: two whole entries."""
    conditions = conditions_of(query.query)
    low: Document = {}
    high: Document = {}
    for path in scan.fields["keyPattern"]:
        found = dict(conditions.get(path, ()))
        low[path] = found.get("$eq", found.get("$gte", found.get("$gt", MinKey())))
        high[path] = found.get("$eq", found.get("$lte", found.get("$lt", MaxKey())))
    named = {name for path in scan.fields["keyPattern"] for name, _ in conditions.get(path, ())}
    return {"startKey": low, "startKeyInclusive": "$gt" not in named, "endKey": high,
            "endKeyInclusive": "$lt" not in named}  # fmt: skip


def distinct_tree(query: Query, key: str, values: int) -> Node:
    """The stages of a ``distinct``: an index gives each value once."""
    collection = query.collection
    if collection is not None and not collection.is_view:
        for index in collection.indexes.values():
            if not index.is_ordered or key not in index.keys or query.residual(index) or index.options.get("sparse"):
                continue
            leading = list(index.keys)[: list(index.keys).index(key)]
            if all(intervals_of(index, path, conditions_of(query.query), query.collation) for path in leading):
                fields = description(
                    index, query.context.pace.through(query.documents), query.query, query.collation, False
                )
                scan = Node("DISTINCT_SCAN", fields, values, {"keysExamined": values})
                return Node("PROJECTION_COVERED", {"transformBy": {"_id": 0, key: 1}}, values, inner=scan)
    return query.scan()


def write_tree(stage: str, counters: Mapping[str, Any], returned: int, query: Query) -> Node:
    """The stages of a write."""
    inner = query.tree()
    if inner.stage == "EXPRESS_IXSCAN":
        fields = {name: value for name, value in inner.fields.items() if name != "projection"}
        return Node(f"EXPRESS_{stage}", fields, returned, {**inner.counters, **counters})
    return Node(stage, {}, returned, counters, inner.inner if inner.stage == "LIMIT" else inner)


def _projection(spec: Mapping[str, Any], covered: bool) -> str:
    if covered:
        return "PROJECTION_COVERED"
    simple = all((is_number(wanted) or isinstance(wanted, bool)) and "." not in path for path, wanted in spec.items())
    included = any(wanted for path, wanted in spec.items() if path != "_id")
    return "PROJECTION_SIMPLE" if simple and included else "PROJECTION_DEFAULT"


def _flat(query: Any) -> list[tuple[str, str, Any]]:
    found: list[tuple[str, str, Any]] = []
    for path, condition in query.items():
        if path == "$and":
            for part in condition:
                found += _flat(part)
        elif path.startswith("$") or not is_operators(condition):
            found.append((path, "" if path.startswith("$") else "$eq", condition))
        else:
            found += [(path, name, operand) for name, operand in condition.items()]
    return found


def normal(conditions: list[tuple[str, str, Any]]) -> Document:
    """Conditions as a server shows them: each for itself, by their operators and paths."""

    def order(condition: tuple[str, str, Any]) -> tuple[int, str]:
        path, name, _ = condition
        return (_OPERATORS.index(name) if name in _OPERATORS else len(_OPERATORS)) if name else -1, path

    parts = [{path: {name: operand} if name else operand} for path, name, operand in sorted(conditions, key=order)]
    return parts[0] if len(parts) == 1 else {"$and": parts} if parts else {}


def parsed(query: Any) -> Document:
    """``parsedQuery``."""
    return normal(_flat(query))

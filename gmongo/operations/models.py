"""Write models, index models, and the checks of their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import ClassVar, Generic, TypeAlias, TypeVar

from bson.raw_bson import RawBSONDocument

from gmongo._documents import Document, DocumentDict, Value, plain
from gmongo._parameter_docs import describes_parameters
from gmongo._truncated_repr import short
from gmongo.collation import Collation, validate_collation_or_none
from gmongo.operations.keys import KeyOrList, index_document, index_name, key_pairs, sort_document

DocumentType = TypeVar("DocumentType", bound=Document)
Update: TypeAlias = Document | Sequence[Document]
Hint: TypeAlias = KeyOrList | None
CollationIn: TypeAlias = Collation | Document | None

_PARAMETER_DOCS = """
:param filter: a query; ``{}`` matches every document.
:param update: operators such as ``{"$set": {"a": 1}}``, or a list of stages. The bulk write checks the first operator.
:param upsert: True inserts a document if no document matches; None uses the server's default, which is False.
:param collation: a ``Collation``, or its fields as a mapping; None (the default) uses the collection's collation.
:param array_filters: conditions for array elements, which the update names as ``$[name]``; None by default.
:param hint: an index name, or the keys as for ``create_index``; None (the default) sets no hint.
:param namespace: ``"database.collection"``, only for ``MongoClient.bulk_write``; None by default.
:param sort: the order that determines the first match: a list or a mapping (MongoDB 8.0). None by default.
"""
_BULK_OPTIONS = ("collation", "array_filters", "hint", "sort")


class ReturnDocument:
    """The values of the argument ``return_document`` of ``find_one_and_replace`` and ``find_one_and_update``.

    Specification: CRUD API, "Find And Modify".
    """

    BEFORE = False
    """Return the original document, or None if no document matched."""
    AFTER = True
    """Return the document after the change."""


class _Model:
    """Base class of models. `_fields` of a write model contains the constructor's parameter names.

    In-memory databases such as mongomock call `_add_to_bulk`, and read PyMongo's private attributes,
    such as `_filter`.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Value:
        if name[:1] == "_" and name[1:] in self._fields:
            return getattr(self, name[1:])
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _options(self) -> DocumentDict:
        options = ((name, getattr(self, name)) for name in _BULK_OPTIONS if name in self._fields)
        return {name: value for name, value in options if value is not None}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    def __repr__(self) -> str:
        arguments = ((name, getattr(self, name)) for name in self._fields)
        argument_text = ", ".join(f"{name}={value!r}" for name, value in arguments if value is not None)
        return f"{type(self).__name__}({argument_text})"


@describes_parameters(_PARAMETER_DOCS)
class InsertOne(_Model, Generic[DocumentType]):
    """Insert operation for one document.

    Specification: CRUD API, "Bulk Write Models".

    :param document: the document. The bulk write checks its type, and adds a missing ``_id``.
    :raises TypeError: `namespace` is not a string.
    :raises ValueError: `namespace` has no dot.
    """

    _fields = ("document", "namespace")
    __slots__ = _fields

    def __init__(self, document: DocumentType, namespace: str | None = None) -> None:
        self.document = document
        self.namespace = _checked_namespace(namespace)

    _doc = property(attrgetter("document"))

    def _add_to_bulk(self, bulk: Value) -> None:
        bulk.add_insert(self.document)


class _Delete(_Model):
    _fields = ("filter", "collation", "hint", "namespace")
    __slots__ = _fields
    _limit: ClassVar[int]

    def __init__(
        self, filter: Document, collation: CollationIn = None, hint: Hint = None, namespace: str | None = None
    ) -> None:
        self.filter = checked_mapping("filter", filter)
        self.collation = validate_collation_or_none(collation)
        self.hint = checked_hint(hint)
        self.namespace = _checked_namespace(namespace)

    def _add_to_bulk(self, bulk: Value) -> None:
        bulk.add_delete(self.filter, self._limit, **self._options())


@describes_parameters(_PARAMETER_DOCS)
class DeleteOne(_Delete):
    """Delete operation for the first document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :param hint: an index name, or the keys as for ``create_index`` (MongoDB 4.4); None (the default)
        sets no hint.
    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or `hint` is an empty list or mapping of keys.
    """

    __slots__ = ()
    _limit = 1


@describes_parameters(_PARAMETER_DOCS)
class DeleteMany(_Delete):
    """Delete operation for every document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :param hint: an index name, or the keys as for ``create_index`` (MongoDB 4.4); None (the default)
        sets no hint.
    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or `hint` is an empty list or mapping of keys.
    """

    __slots__ = ()
    _limit = 0


@describes_parameters(_PARAMETER_DOCS)
class ReplaceOne(_Model, Generic[DocumentType]):
    """Replace operation for the first document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :param replacement: the new document. The bulk write checks that its first field is no update
        operator.
    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or `hint` or `sort` is an empty list or mapping.
    """

    _fields = ("filter", "replacement", "upsert", "collation", "hint", "namespace", "sort")
    __slots__ = _fields

    def __init__(
        self,
        filter: Document,
        replacement: DocumentType | RawBSONDocument,
        upsert: bool | None = None,
        collation: CollationIn = None,
        hint: Hint = None,
        namespace: str | None = None,
        sort: KeyOrList | None = None,
    ) -> None:
        self.filter = checked_mapping("filter", filter)
        self.replacement = replacement
        self.upsert = _checked_upsert(upsert)
        self.collation = validate_collation_or_none(collation)
        self.hint = checked_hint(hint)
        self.namespace = _checked_namespace(namespace)
        self.sort = _checked_sort(sort)

    _doc = property(attrgetter("replacement"))

    def _add_to_bulk(self, bulk: Value) -> None:
        bulk.add_replace(self.filter, self.replacement, self.upsert, **self._options())


class _Update(_Model):
    __slots__ = ("array_filters", "collation", "filter", "hint", "namespace", "update", "upsert")
    _multi: ClassVar[bool]

    def __init__(
        self,
        filter: Document,
        update: Update,
        upsert: bool | None = None,
        collation: CollationIn = None,
        array_filters: Sequence[Document] | None = None,
        hint: Hint = None,
        namespace: str | None = None,
    ) -> None:
        self.filter = checked_mapping("filter", filter)
        self.update = update
        self.upsert = _checked_upsert(upsert)
        self.collation = validate_collation_or_none(collation)
        self.array_filters = checked_array_filters(array_filters)
        self.hint = checked_hint(hint)
        self.namespace = _checked_namespace(namespace)

    _doc = property(attrgetter("update"))

    def _add_to_bulk(self, bulk: Value) -> None:
        bulk.add_update(self.filter, self.update, self._multi, bool(self.upsert), **self._options())


@describes_parameters(_PARAMETER_DOCS)
class UpdateMany(_Update):
    """Update operation for every document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or `hint` is an empty list or mapping of keys.
    """

    _fields = ("filter", "update", "upsert", "collation", "array_filters", "hint", "namespace")
    __slots__ = ()
    _multi = True


@describes_parameters(_PARAMETER_DOCS)
class UpdateOne(_Update):
    """Update operation for the first document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or `hint` or `sort` is an empty list or mapping.
    """

    _fields = ("filter", "update", "upsert", "collation", "array_filters", "hint", "namespace", "sort")
    __slots__ = ("sort",)
    _multi = False

    def __init__(
        self,
        filter: Document,
        update: Update,
        upsert: bool | None = None,
        collation: CollationIn = None,
        array_filters: Sequence[Document] | None = None,
        hint: Hint = None,
        namespace: str | None = None,
        sort: KeyOrList | None = None,
    ) -> None:
        super().__init__(filter, update, upsert, collation, array_filters, hint, namespace)
        self.sort = _checked_sort(sort)


WriteModel: TypeAlias = (
    InsertOne[DocumentType] | ReplaceOne[DocumentType] | UpdateOne | UpdateMany | DeleteOne | DeleteMany
)
"""Any write model of ``bulk_write``."""
WRITE_MODELS = (InsertOne, ReplaceOne, UpdateOne, UpdateMany, DeleteOne, DeleteMany)


class _IndexModel(_Model):
    _fields = ("document",)
    __slots__ = ("_document",)
    _document: DocumentDict

    @property
    def document(self) -> DocumentDict:
        """The index specification, in the form of the command that creates the index."""
        return self._document


class IndexModel(_IndexModel):
    """Definition of an index, for :meth:`Collection.create_indexes <gmongo.collection.Collection.create_indexes>`.

        >>> IndexModel([("place", "2dsphere"), ("created", -1)], sparse=True).document
        {'sparse': True, 'name': 'place_2dsphere_created_-1', 'key': {'place': '2dsphere', 'created': -1}}

    Specification: Index Management, "Standard API".

    :param keys: a field name, a list of names and ``(name, direction)`` pairs, or a mapping.
    :param kwargs: options of ``createIndexes``, such as ``name`` (derived from the keys by default), ``unique``,
        ``sparse``, ``hidden`` (MongoDB 4.4), ``expireAfterSeconds``, ``partialFilterExpression`` and ``collation``.
    :raises TypeError: the keys or the collation have the wrong type.
    :raises ValueError: `keys` is empty.
    """

    __slots__ = ()

    def __init__(self, keys: KeyOrList, **kwargs: Value) -> None:
        pairs = key_pairs(keys, "keys")
        collation = validate_collation_or_none(kwargs.pop("collation", None))
        if kwargs.get("name") is None:
            kwargs["name"] = index_name(pairs, "keys")
        self._document = {**kwargs, "key": dict(pairs)}
        if collation is not None:
            self._document["collation"] = collation

    def __repr__(self) -> str:
        options = {name: value for name, value in self._document.items() if name != "key"}
        return f"IndexModel({self._document['key']!r}{_format_arguments(options)})"


class SearchIndexModel(_IndexModel):
    """Definition of an Atlas Search index.

    :meth:`Collection.create_search_indexes <gmongo.collection.Collection.create_search_indexes>` creates the index.

    Specification: Index Management, "Search Indexes".

    :param definition: the definition of the index, such as ``{"mappings": {"dynamic": True}}``.
    :param name: the name of the index; None lets the server choose ``"default"``.
    :param type: ``"search"`` or ``"vectorSearch"``; None lets the server choose ``"search"``.
    :param kwargs: further fields of the index specification.
    :raises TypeError: `definition` is not a mapping.
    """

    __slots__ = ()

    def __init__(self, definition: Document, name: str | None = None, type: str | None = None, **kwargs: Value) -> None:
        self._document = {} if name is None else {"name": name}
        self._document["definition"] = checked_mapping("definition", definition)
        if type is not None:
            self._document["type"] = type
        self._document.update(kwargs)

    def __repr__(self) -> str:
        return f"SearchIndexModel({_format_arguments(self._document).removeprefix(', ')})"


def _format_arguments(options: Document) -> str:
    return "".join(f", {name}={value!r}" for name, value in options.items())


def checked_mapping(option: str, value: Document) -> Document:
    """Return a dict or raw document unchanged. Copy another mapping to a dict, or raise TypeError."""
    if isinstance(value, dict):
        return value
    check_is_mapping(option, value)
    document: Document = plain(value)
    return document


def check_is_mapping(option: str, value: object) -> None:
    """Raise TypeError, with the name of the option, if `value` is not a mapping."""
    # The check for `dict` comes first, because the check for `Mapping` is slower.
    if not isinstance(value, (dict, Mapping)):
        raise TypeError(f"{option} must be a mapping such as a dict, not {short(value)}")


def checked_update(update: Update) -> Update:
    """Check that `update` is a pipeline or begins with an operator, and return `update`."""
    if not isinstance(update, (dict, list, tuple, Mapping)):
        raise TypeError(f"update must be a mapping or a list of pipeline stages, not {short(update)}")
    if not update:
        raise ValueError(f"update must not be empty, was {short(update)}")
    if isinstance(update, Mapping) and not _begins_with_operator(update):
        raise ValueError(f"update must begin with an operator such as $set, was {short(update)}")
    return update if isinstance(update, dict) else plain(update)


def checked_replacement(replacement: Document) -> Document:
    """Check that `replacement` does not begin with an update operator, and return `replacement`."""
    replacement = checked_mapping("replacement", replacement)
    # Do not check a raw document, because the check would decode the whole document.
    if not isinstance(replacement, RawBSONDocument) and replacement and _begins_with_operator(replacement):
        raise ValueError(f"replacement must not begin with an update operator, was {short(replacement)}")
    return replacement


def checked_change(model: UpdateOne | UpdateMany | ReplaceOne[Value]) -> Value:
    """Return the update or replacement of a write model, or raise an error for an invalid value."""
    return checked_replacement(model.replacement) if isinstance(model, ReplaceOne) else checked_update(model.update)


def checked_array_filters(filters: Sequence[Document] | None) -> Sequence[Document] | None:
    """Check that `filters` is None, a list or a tuple, and return `filters`."""
    if filters is not None and not isinstance(filters, (list, tuple)):
        raise TypeError(f"array_filters must be a list of filters, not {short(filters)}")
    return filters


def checked_hint(hint: Hint) -> str | DocumentDict | None:
    """Return a hint for a command: an index name, a document with the keys of an index, or None."""
    return hint if hint is None or isinstance(hint, str) else index_document(hint, "hint")


def _checked_sort(sort: KeyOrList | None) -> DocumentDict | None:
    return None if sort is None else sort_document(sort)


def _checked_upsert(upsert: bool | None) -> bool | None:
    if upsert is not None and not isinstance(upsert, bool):
        raise TypeError(f"upsert must be True, False or None, not {short(upsert)}")
    return upsert


def _checked_namespace(namespace: str | None) -> str | None:
    if namespace is None:
        return None
    if not isinstance(namespace, str):
        raise TypeError(f'namespace must be a string "database.collection", not {short(namespace)}')
    if "." not in namespace:
        raise ValueError(f'namespace must have the form "database.collection", was {short(namespace)}')
    return namespace


def _begins_with_operator(document: Document) -> bool:
    first = next(iter(document))
    return isinstance(first, str) and first.startswith("$")


def checked_flag(name: str, value: object) -> bool:
    """Check that `value` is True or False, and return `value`."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {short(value)}")
    return value


def checked_let(let: Document | None) -> Document | None:
    """Check and return the variables for the command field ``let``."""
    return None if let is None else checked_mapping("let", let)

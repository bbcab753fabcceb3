"""Write models for ``bulk_write``, index models, and the checks of their arguments.

Models hold data, checked and brought into the server's form; commands are made of them elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import ClassVar, Generic, Protocol, TypeAlias, TypeVar

from bson.raw_bson import RawBSONDocument

from gmongo._documents import Document, DocumentDict, Value, plain
from gmongo._short_text import short
from gmongo.collation import Collation, validate_collation_or_none
from gmongo.operations.keys import KeyOrList, index_document, index_list, index_name, sort_document

__all__ = [
    "DeleteMany",
    "DeleteOne",
    "IndexModel",
    "InsertOne",
    "ReplaceOne",
    "ReturnDocument",
    "SearchIndexModel",
    "UpdateMany",
    "UpdateOne",
    "checked_array_filters",
    "checked_change",
    "checked_flag",
    "checked_hint",
    "checked_let",
    "checked_mapping",
    "checked_replacement",
    "checked_update",
]

DocumentType = TypeVar("DocumentType", bound=Document)
Update: TypeAlias = Document | Sequence[Document]
Hint: TypeAlias = KeyOrList | None
CollationIn: TypeAlias = Collation | Document | None

_BULK_OPTIONS = ("collation", "array_filters", "hint", "sort")


class ReturnDocument:
    """Which version of the document ``find_one_and_replace`` and ``find_one_and_update`` return.

    Specification: CRUD API, "Find And Modify".
    """

    BEFORE = False
    """The document as it was, or None if it was inserted."""
    AFTER = True
    """The document as it is now."""


class _Model:
    """Equality and repr over `_fields`, which are the constructor's parameters in their order.

    Libraries that keep documents in memory read models by PyMongo's private names: ``_filter`` is `filter`, and so on.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Value:
        if name[:1] == "_" and name[1:] in self._fields:
            return getattr(self, name[1:])
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _options(self) -> DocumentDict:
        """What `_add_to_bulk` passes on beside documents, if it was given."""
        given = ((name, getattr(self, name)) for name in _BULK_OPTIONS if name in self._fields)
        return {name: value for name, value in given if value is not None}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    def __repr__(self) -> str:
        given = ((name, getattr(self, name)) for name in self._fields)
        shown = ", ".join(f"{name}={value!r}" for name, value in given if value is not None)
        return f"{type(self).__name__}({shown})"


class InsertOne(_Model, Generic[DocumentType]):
    """Insert one document.

    Specification: CRUD API, "Bulk Write Models".

    :param document: the document. It gets an ``_id`` when it is sent, if it has none. That it is a mapping is checked
        then, too.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write
        <gmongo.mongo_client.MongoClient.bulk_write>` only.
    :raises TypeError: `namespace` is no string.
    :raises ValueError: it has no dot.
    """

    _fields = ("document", "namespace")
    __slots__ = _fields

    def __init__(self, document: DocumentType, namespace: str | None = None) -> None:
        self.document = document
        self.namespace = _checked_namespace(namespace)

    _doc = property(attrgetter("document"))

    def _add_to_bulk(self, bulk: _OtherBulk) -> None:
        """Tell the bulk write what to do; also in the other models."""
        bulk.add_insert(self.document)


class _OtherBulk(Protocol):
    """A bulk write of another library, such as mongomock's."""

    add_insert: Callable[..., object]
    add_update: Callable[..., object]
    add_replace: Callable[..., object]
    add_delete: Callable[..., object]


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

    def _add_to_bulk(self, bulk: _OtherBulk) -> None:
        bulk.add_delete(self.filter, self._limit, **self._options())


class DeleteOne(_Delete):
    """Delete the first document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :param filter: a query; ``{}`` matches every document.
    :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document. None
        takes the collection's own.
    :param hint: the index to use: its name, or its keys in any form that ``create_index`` takes (MongoDB 4.4). None
        lets the server choose.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write
        <gmongo.mongo_client.MongoClient.bulk_write>` only.
    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or the keys of an index or a sort are empty.
    """

    __slots__ = ()
    _limit = 1


class DeleteMany(_Delete):
    """Delete every document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :param filter: a query; ``{}`` matches every document.
    :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document. None
        takes the collection's own.
    :param hint: the index to use: its name, or its keys in any form that ``create_index`` takes (MongoDB 4.4). None
        lets the server choose.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write
        <gmongo.mongo_client.MongoClient.bulk_write>` only.
    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or the keys of an index or a sort are empty.
    """

    __slots__ = ()
    _limit = 0


class ReplaceOne(_Model, Generic[DocumentType]):
    """Replace the first document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :param filter: a query; ``{}`` matches every document.
    :param replacement: the new document. When it is written, it is checked to begin with no update operator.
    :param upsert: True inserts the replacement if nothing matches; None leaves it to the server, which does not.
    :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document. None
        takes the collection's own.
    :param hint: the index to use: its name, or its keys in any form that ``create_index`` takes. None lets the server
        choose.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write
        <gmongo.mongo_client.MongoClient.bulk_write>` only.
    :param sort: which document is the first, if several match: a list of fields and directions, or a mapping (MongoDB
        8.0). None takes whichever the server finds first.
    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or the keys of an index or a sort are empty.
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

    def _add_to_bulk(self, bulk: _OtherBulk) -> None:
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

    def _add_to_bulk(self, bulk: _OtherBulk) -> None:
        bulk.add_update(self.filter, self.update, self._multi, bool(self.upsert), **self._options())


class UpdateMany(_Update):
    """Change every document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :param filter: a query; ``{}`` matches every document.
    :param update: operators such as ``{"$set": {"a": 1}}``, or a pipeline as a list of stages. When it is written, it
        is checked to begin with an operator.
    :param upsert: True inserts a document if nothing matches; None leaves it to the server, which does not.
    :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document. None
        takes the collection's own.
    :param array_filters: a list of conditions; ``$[name]`` in the update stands for the elements of an array that match
        the one on ``name``. None is without.
    :param hint: the index to use: its name, or its keys in any form that ``create_index`` takes. None lets the server
        choose.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write
        <gmongo.mongo_client.MongoClient.bulk_write>` only.
    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or the keys of an index or a sort are empty.
    """

    _fields = ("filter", "update", "upsert", "collation", "array_filters", "hint", "namespace")
    __slots__ = ()
    _multi = True


class UpdateOne(_Update):
    """Change the first document that matches.

    Specification: CRUD API, "Bulk Write Models".

    :param filter: a query; ``{}`` matches every document.
    :param update: operators such as ``{"$set": {"a": 1}}``, or a pipeline as a list of stages. When it is written, it
        is checked to begin with an operator.
    :param upsert: True inserts a document if nothing matches; None leaves it to the server, which does not.
    :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document. None
        takes the collection's own.
    :param array_filters: a list of conditions; ``$[name]`` in the update stands for the elements of an array that match
        the one on ``name``. None is without.
    :param hint: the index to use: its name, or its keys in any form that ``create_index`` takes. None lets the server
        choose.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write
        <gmongo.mongo_client.MongoClient.bulk_write>` only.
    :param sort: which document is the first, if several match: a list of fields and directions, or a mapping (MongoDB
        8.0). None takes whichever the server finds first.
    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `namespace` has no dot, or the keys of an index or a sort are empty.
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
"""What a bulk write is made of."""


class IndexModel(_Model):
    """An index to create, for :meth:`Collection.create_indexes <gmongo.collection.Collection.create_indexes>`.

        >>> IndexModel([("place", "2dsphere"), ("created", -1)], sparse=True).document
        {'sparse': True, 'name': 'place_2dsphere_created_-1', 'key': {'place': '2dsphere', 'created': -1}}

    Specification: Index Management, "Standard API".

    :param keys: a field name, a list of names and ``(name, direction)`` pairs, or a mapping.
    :param kwargs: any option of ``createIndexes``, such as ``name`` (made of the keys by default), ``unique``,
        ``sparse``, ``hidden`` (MongoDB 4.4), ``expireAfterSeconds``, ``partialFilterExpression``,
        ``wildcardProjection`` or ``collation``.
    :raises TypeError: the keys or the collation have the wrong type.
    :raises ValueError: there are no keys.
    """

    _fields = ("document",)
    __slots__ = ("_document",)

    def __init__(self, keys: KeyOrList, **kwargs: Value) -> None:
        pairs = index_list(keys)
        collation = validate_collation_or_none(kwargs.pop("collation", None))
        if kwargs.get("name") is None:
            kwargs["name"] = index_name(pairs)
        self._document: DocumentDict = {**kwargs, "key": index_document(pairs)}
        if collation is not None:
            self._document["collation"] = collation

    @property
    def document(self) -> DocumentDict:
        """The index specification, as ``createIndexes`` takes it."""
        return self._document

    def __repr__(self) -> str:
        options = {name: value for name, value in self._document.items() if name != "key"}
        return f"IndexModel({self._document['key']!r}{_arguments(options)})"


class SearchIndexModel(_Model):
    """An index for Atlas Search to create, for :meth:`Collection.create_search_indexes
    <gmongo.collection.Collection.create_search_indexes>`.

    Specification: Index Management, "Search Indexes".

    :param definition: the definition of the index, such as ``{"mappings": {"dynamic": True}}``.
    :param name: its name; None is ``"default"``, which the server chooses.
    :param type: ``"search"`` or ``"vectorSearch"``; None is the former, which the server chooses.
    :param kwargs: any further field of the specification.
    :raises TypeError: `definition` is not a mapping.
    """

    _fields = ("document",)
    __slots__ = ("_document",)

    def __init__(self, definition: Document, name: str | None = None, type: str | None = None, **kwargs: Value) -> None:
        self._document: DocumentDict = {} if name is None else {"name": name}
        self._document["definition"] = checked_mapping("definition", definition)
        if type is not None:
            self._document["type"] = type
        self._document.update(kwargs)

    @property
    def document(self) -> DocumentDict:
        """The index specification, as ``createSearchIndexes`` takes it."""
        return self._document

    def __repr__(self) -> str:
        return f"SearchIndexModel({_arguments(self._document).removeprefix(', ')})"


def _arguments(options: Document) -> str:
    return "".join(f", {name}={value!r}" for name, value in options.items())


def checked_mapping(option: str, value: Document) -> Document:
    """`value`, as a copy if it is not a dict, or :class:`TypeError` if it is not a mapping.

    :param option: the name to call it by in the error message.
    """
    if isinstance(value, dict):
        return value
    check_is_mapping(option, value)
    copied: Document = plain(value)
    return copied


def check_is_mapping(option: str, value: object) -> None:
    """Raise :class:`TypeError` if `value` is not a mapping.

    :param option: the name to call it by in the error message.
    """
    if not isinstance(value, (dict, Mapping)):  # dict first, which is the quick one to ask for
        raise TypeError(f"{option} must be a mapping such as a dict, not {short(value)}")


def checked_update(update: Update) -> Update:
    """`update`, if it is a document that begins with an operator, or a pipeline.

    Raises :class:`TypeError` if it is of another type, :class:`ValueError` if it is empty or has no operator.
    """
    if not isinstance(update, (dict, list, tuple, Mapping)):
        raise TypeError(f"update must be a mapping or a list of pipeline stages, not {short(update)}")
    if not update:
        raise ValueError(f"update must not be empty, was {short(update)}")
    if isinstance(update, Mapping) and not _begins_with_operator(update):
        raise ValueError(f"update must begin with an operator such as $set, was {short(update)}")
    return update if isinstance(update, dict) else plain(update)


def checked_replacement(replacement: Document) -> Document:
    """`replacement`, if it is a document that does not begin with an operator.

    Raises :class:`TypeError` if it is not a mapping, :class:`ValueError` if it begins with ``$``.
    """
    replacement = checked_mapping("replacement", replacement)
    # Looking at the first key of a raw document would decode the whole of it.
    if not isinstance(replacement, RawBSONDocument) and replacement and _begins_with_operator(replacement):
        raise ValueError(f"replacement must not begin with an update operator, was {short(replacement)}")
    return replacement


def checked_change(model: UpdateOne | UpdateMany | ReplaceOne[Value]) -> Value:
    """What a model changes documents by: its update, or its replacement; raises what the checks of these raise."""
    return checked_replacement(model.replacement) if isinstance(model, ReplaceOne) else checked_update(model.update)


def checked_array_filters(filters: Sequence[Document] | None) -> Sequence[Document] | None:
    """`filters`, or :class:`TypeError` if it is neither None nor a list or a tuple."""
    if filters is not None and not isinstance(filters, (list, tuple)):
        raise TypeError(f"array_filters must be a list of filters, not {short(filters)}")
    return filters


def checked_hint(hint: Hint) -> str | DocumentDict | None:
    """The hint as the server takes it: the name of an index, or the document of its keys.

    Raises :class:`TypeError` or :class:`ValueError` as :func:`gmongo.operations.keys.index_list` does.
    """
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
    """A flag called `name`; raises :class:`TypeError` if it is neither True nor False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {short(value)}")
    return value


def checked_let(let: Document | None) -> Document | None:
    """Variables of a command; raises :class:`TypeError` if they are no mapping."""
    return None if let is None else checked_mapping("let", let)

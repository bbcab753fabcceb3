"""Write models for ``bulk_write``, index models, and the checks of their arguments.

Models hold data, checked and brought into the server's form; commands are made of them elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as short
from typing import Any, ClassVar, Generic, TypeVar

from bson.raw_bson import RawBSONDocument

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

DocumentType = TypeVar("DocumentType", bound=Mapping[str, Any])
Update = Mapping[str, Any] | list[Mapping[str, Any]]
Hint = KeyOrList | None
CollationIn = Collation | Mapping[str, Any] | None


class ReturnDocument:
    """Which version of the document ``find_one_and_replace`` and ``find_one_and_update`` return."""

    BEFORE = False
    """The document as it was, or None if it was inserted."""
    AFTER = True
    """The document as it is now."""


class _Model:
    """Equality and repr over `_fields`, which are the constructor's parameters in their order."""

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    __hash__ = None  # type: ignore[assignment]

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

    :param document: the document. It gets an ``_id`` when it is sent, if it has none. That it is a mapping is checked
        then, too.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write` only.
    """

    _fields = ("document", "namespace")
    __slots__ = _fields

    def __init__(self, document: DocumentType, namespace: str | None = None) -> None:
        self.document = document
        self.namespace = _checked_namespace(namespace)


class _Delete(_Model):
    _fields = ("filter", "collation", "hint", "namespace")
    __slots__ = _fields

    def __init__(
        self,
        filter: Mapping[str, Any],
        collation: CollationIn = None,
        hint: Hint = None,
        namespace: str | None = None,
    ) -> None:
        self.filter = checked_mapping("filter", filter)
        self.collation = validate_collation_or_none(collation)
        self.hint = checked_hint(hint)
        self.namespace = _checked_namespace(namespace)


class DeleteOne(_Delete):
    """Delete the first document that matches.

    :param filter: which document to delete.
    :param collation: how strings are compared.
    :param hint: the index to use: its name, or its keys.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write` only.

    Raises :class:`TypeError` if a parameter is of the wrong type.
    """

    __slots__ = ()


class DeleteMany(_Delete):
    """Delete every document that matches.

    :param filter: which documents to delete.
    :param collation: how strings are compared.
    :param hint: the index to use: its name, or its keys.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write` only.

    Raises :class:`TypeError` if a parameter is of the wrong type.
    """

    __slots__ = ()


class ReplaceOne(_Model, Generic[DocumentType]):
    """Replace the first document that matches.

    :param filter: which document to replace.
    :param replacement: the new document, without update operators.
    :param upsert: whether to insert the replacement if nothing matches.
    :param collation: how strings are compared.
    :param hint: the index to use: its name, or its keys.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write` only.
    :param sort: which document is the first, if several match (MongoDB 8.0).

    Raises :class:`TypeError` if a parameter is of the wrong type. The replacement is checked when it is written: it
    must not begin with an update operator.
    """

    _fields = ("filter", "replacement", "upsert", "collation", "hint", "namespace", "sort")
    __slots__ = _fields

    def __init__(
        self,
        filter: Mapping[str, Any],
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


class _Update(_Model):
    __slots__ = ("array_filters", "collation", "filter", "hint", "namespace", "update", "upsert")

    def __init__(
        self,
        filter: Mapping[str, Any],
        update: Update,
        upsert: bool | None = None,
        collation: CollationIn = None,
        array_filters: list[Mapping[str, Any]] | None = None,
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


class UpdateMany(_Update):
    """Update every document that matches.

    :param filter: which documents to update.
    :param update: update operators, such as ``{"$set": {"a": 1}}``, or a pipeline.
    :param upsert: whether to insert a document if nothing matches.
    :param collation: how strings are compared.
    :param array_filters: which elements of arrays ``$[name]`` stands for.
    :param hint: the index to use: its name, or its keys.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write` only.

    Raises :class:`TypeError` if a parameter is of the wrong type. The update is checked when it is written: it must
    begin with an operator, or be a pipeline.
    """

    _fields = ("filter", "update", "upsert", "collation", "array_filters", "hint", "namespace")
    __slots__ = ()


class UpdateOne(_Update):
    """Update the first document that matches.

    :param filter: which document to update.
    :param update: update operators, such as ``{"$set": {"a": 1}}``, or a pipeline.
    :param upsert: whether to insert a document if nothing matches.
    :param collation: how strings are compared.
    :param array_filters: which elements of arrays ``$[name]`` stands for.
    :param hint: the index to use: its name, or its keys.
    :param namespace: ``"database.collection"``, for :meth:`MongoClient.bulk_write` only.
    :param sort: which document is the first, if several match (MongoDB 8.0).

    Raises :class:`TypeError` if a parameter is of the wrong type. The update is checked when it is written: it must
    begin with an operator, or be a pipeline.
    """

    _fields = ("filter", "update", "upsert", "collation", "array_filters", "hint", "namespace", "sort")
    __slots__ = ("sort",)

    def __init__(
        self,
        filter: Mapping[str, Any],
        update: Update,
        upsert: bool | None = None,
        collation: CollationIn = None,
        array_filters: list[Mapping[str, Any]] | None = None,
        hint: Hint = None,
        namespace: str | None = None,
        sort: KeyOrList | None = None,
    ) -> None:
        super().__init__(filter, update, upsert, collation, array_filters, hint, namespace)
        self.sort = _checked_sort(sort)


class IndexModel(_Model):
    """An index to create.

    :param keys: a field name, a list of names and ``(name, direction)`` pairs, or a mapping.
    :param kwargs: any option of ``createIndexes``, such as ``name``, ``unique``, ``sparse``, ``hidden``,
        ``expireAfterSeconds``, ``partialFilterExpression``, ``wildcardProjection`` or ``collation``.

    Raises :class:`TypeError` or :class:`ValueError` if the keys or the collation are malformed.
    """

    _fields = ("document",)
    __slots__ = ("_document",)

    def __init__(self, keys: KeyOrList, **kwargs: Any) -> None:
        pairs = index_list(keys)
        collation = validate_collation_or_none(kwargs.pop("collation", None))
        if kwargs.get("name") is None:
            kwargs["name"] = index_name(pairs)
        self._document: dict[str, Any] = {**kwargs, "key": index_document(pairs)}
        if collation is not None:
            self._document["collation"] = collation

    @property
    def document(self) -> dict[str, Any]:
        """The index specification, as ``createIndexes`` takes it."""
        return self._document


class SearchIndexModel(_Model):
    """A search index to create.

    :param definition: the definition of the index.
    :param name: the name of the index; the server calls it ``"default"`` if None.
    :param type: ``"search"`` or ``"vectorSearch"``; the server takes the former if None.
    :param kwargs: any further field of the specification.

    Raises :class:`TypeError` if `definition` is not a mapping.
    """

    _fields = ("document",)
    __slots__ = ("_document",)

    def __init__(
        self, definition: Mapping[str, Any], name: str | None = None, type: str | None = None, **kwargs: Any
    ) -> None:
        self._document: dict[str, Any] = {} if name is None else {"name": name}
        self._document["definition"] = checked_mapping("definition", definition)
        if type is not None:
            self._document["type"] = type
        self._document.update(kwargs)

    @property
    def document(self) -> dict[str, Any]:
        """The index specification, as ``createSearchIndexes`` takes it."""
        return self._document


def checked_mapping(option: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """`value`, or :class:`TypeError` if it is not a mapping.

    :param option: the name to call it by in the error message.
    """
    if not isinstance(value, (dict, Mapping)):  # dict first, which is the quick one to ask for
        raise TypeError(f"{option} must be a mapping such as a dict, not {short(value)}")
    return value


def checked_update(update: Update) -> Update:
    """`update`, if it is a document that begins with an operator, or a pipeline.

    Raises :class:`TypeError` if it is of another type, :class:`ValueError` if it is empty or has no operator.
    """
    if not isinstance(update, (dict, list, Mapping)):
        raise TypeError(f"update must be a mapping or a list of pipeline stages, not {short(update)}")
    if not update:
        raise ValueError(f"update must not be empty, was {short(update)}")
    if not isinstance(update, list) and not _begins_with_operator(update):
        raise ValueError(f"update must begin with an operator such as $set, was {short(update)}")
    return update


def checked_replacement(replacement: Mapping[str, Any]) -> Mapping[str, Any]:
    """`replacement`, if it is a document that does not begin with an operator.

    Raises :class:`TypeError` if it is not a mapping, :class:`ValueError` if it begins with ``$``.
    """
    checked_mapping("replacement", replacement)
    # Looking at the first key of a raw document would decode the whole of it.
    if not isinstance(replacement, RawBSONDocument) and replacement and _begins_with_operator(replacement):
        raise ValueError(f"replacement must not begin with an update operator, was {short(replacement)}")
    return replacement


def checked_change(model: UpdateOne | UpdateMany | ReplaceOne[Any]) -> Any:
    """What a model changes documents by: its update, or its replacement; raises what the checks of these raise."""
    return checked_replacement(model.replacement) if isinstance(model, ReplaceOne) else checked_update(model.update)


def checked_array_filters(filters: list[Mapping[str, Any]] | None) -> list[Mapping[str, Any]] | None:
    """`filters`, or :class:`TypeError` if it is neither None nor a list."""
    if filters is not None and not isinstance(filters, list):
        raise TypeError(f"array_filters must be a list of filters, not {short(filters)}")
    return filters


def checked_hint(hint: Hint) -> str | dict[str, Any] | None:
    """The hint as the server takes it: the name of an index, or the document of its keys.

    Raises :class:`TypeError` or :class:`ValueError` as :func:`gmongo.operations.keys.index_list` does.
    """
    return hint if hint is None or isinstance(hint, str) else index_document(hint)


def _checked_sort(sort: KeyOrList | None) -> dict[str, Any] | None:
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


def _begins_with_operator(document: Mapping[str, Any]) -> bool:
    first = next(iter(document))
    return isinstance(first, str) and first.startswith("$")


def checked_flag(name: str, value: Any) -> bool:
    """A flag called `name`; raises :class:`TypeError` if it is neither True nor False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {short(value)}")
    return value


def checked_let(let: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Variables of a command; raises :class:`TypeError` if they are no mapping."""
    return None if let is None else checked_mapping("let", let)

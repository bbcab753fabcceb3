"""Hints for error messages about unknown names: the most similar known name, or the successor of an old method."""

from __future__ import annotations

from collections.abc import Iterable

from gmongo._truncated_repr import short

# Minimum similarity, from 0 to 1. With a lower number, the option "safe" would get a wrong hint.
_LOWEST_SIMILARITY = 0.65

# Methods of PyMongo 2 and 3, and the methods that replace them.
_SUCCESSORS = {
    "add_user": "command('createUser', …)",
    "authenticate": "MongoClient(username=…, password=…)",
    "collection_names": "list_collection_names()",
    "count": "count_documents() or estimated_document_count()",
    "ensure_index": "create_index()",
    "find_and_modify": "find_one_and_update(), find_one_and_replace() or find_one_and_delete()",
    "group": "aggregate() with $group",
    "initialize_ordered_bulk_op": "bulk_write()",
    "initialize_unordered_bulk_op": "bulk_write(ordered=False)",
    "insert": "insert_one() or insert_many()",
    "map_reduce": "aggregate()",
    "reindex": "command('reIndex', …) of the database",
    "remove": "delete_one() or delete_many()",
    "remove_user": "command('dropUser', …)",
    "save": "insert_one(), or replace_one() with upsert=True",
    "update": "update_one(), update_many() or replace_one()",
}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`. Return None if no name is similar."""
    import difflib  # imported here, because only error messages need difflib

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_LOWEST_SIMILARITY)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for an error message: the most similar known name, or an empty text if no name is similar."""
    match = nearest(name, known)
    return f" (did you mean {match!r}?)" if match else ""


def no_such_method(owner: type, name: str) -> TypeError:
    """Return the error for the call of an unknown attribute, which is a collection, not a method."""
    methods = (each for each in dir(owner) if each[0] != "_" and callable(getattr(owner, each)))
    if name in _SUCCESSORS:
        hint = f"; use {_SUCCESSORS[name]}"
    else:
        match = nearest(name, methods)
        hint = f" (did you mean {match}()?)" if match else ""
    return TypeError(f"'Collection' object is not callable: {owner.__name__} has no method {short(name)}{hint}")

"""Error for a call of a missing method, with the name of a similar method."""

from __future__ import annotations

from gmongo._truncated_repr import short

# Methods of PyMongo 2 and 3 with their successors.
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
_NEAR = 0.7


def no_such_method(owner: type, name: str) -> TypeError:
    """Return the error for a call of a collection, which is a call of a missing method.

    :param owner: the class without the method.
    :param name: the name of the method.
    """
    successor = _SUCCESSORS.get(name)
    hint = f"; use {successor}" if successor else _nearest(owner, name)
    return TypeError(f"'Collection' object is not callable: {owner.__name__} has no method {short(name)}{hint}")


def _nearest(owner: type, name: str) -> str:
    import difflib  # import late, because only this error needs difflib

    methods = [each for each in dir(owner) if each[0] != "_" and callable(getattr(owner, each))]
    nearest = difflib.get_close_matches(name, methods, n=1, cutoff=_NEAR)
    return f" (did you mean {nearest[0]}()?)" if nearest else ""

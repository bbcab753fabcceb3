"""Error for the call of a method that does not exist. The message names a similar method."""

from __future__ import annotations

from gmongo._nearest import nearest
from gmongo._truncated_repr import short

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


def no_such_method(owner: type, name: str) -> TypeError:
    """Return the error for the call of an unknown attribute, which is a database or collection instead of a method."""
    methods = (each for each in dir(owner) if each[0] != "_" and callable(getattr(owner, each)))
    if name in _SUCCESSORS:
        hint = f"; use {_SUCCESSORS[name]}"
    else:
        match = nearest(name, methods)
        hint = f" (did you mean {match}()?)" if match else ""
    return TypeError(f"'Collection' object is not callable: {owner.__name__} has no method {short(name)}{hint}")

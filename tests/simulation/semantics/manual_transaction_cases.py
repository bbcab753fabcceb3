"""Transactions, as the manual describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import after
from .cases import (
    OPERATION_FAILURES,
    Case,
)
from .manual_calls import everything, ids, made, page, refused


def _left_open(collection: Any) -> None:
    session = collection.database.client.start_session()
    session.start_transaction()
    collection.insert_one({"_id": 9}, session=session)
    collection.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
    session.end_session()


def _in_transaction(body: Callable[[Any, Any], Any], *, commit: bool = True) -> Callable[[Any], Any]:
    """The answer of a body in a transaction, which is committed or aborted."""

    def run(collection: Any) -> Any:
        with collection.database.client.start_session() as session:
            session.start_transaction()
            found = body(collection, session)
            if session.in_transaction:
                if commit:
                    session.commit_transaction()
                else:
                    session.abort_transaction()
        return found

    return run


def _code(call: Callable[[], Any]) -> Any:
    try:
        answer = call()
    except OPERATION_FAILURES as error:
        return error.code
    if isinstance(answer, dict) and answer.get("writeErrors"):
        return answer["writeErrors"][0]["code"]
    return "none"


CASES = [
    Case(
        "an aborted transaction leaves nothing",
        [{"_id": 1, "a": 1}],
        after(
            _in_transaction(
                lambda c, s: [c.insert_one({"_id": 2}, session=s), c.update_one({}, {"$set": {"a": 5}}, session=s)],
                commit=False,
            ),
            everything,
        ),
        [{"_id": 1, "a": 1}],
        page("core/transactions"),
    ),
    Case(
        "a transaction sees its own changes, others do not until it commits",
        [{"_id": 1}],
        lambda c: [
            *_in_transaction(
                lambda k, s: [
                    k.insert_one({"_id": 2}, session=s).inserted_id,
                    k.count_documents({}, session=s),
                    k.count_documents({}),
                ]
            )(c),
            c.count_documents({}),
        ],
        [2, 2, 1, 2],
        page("core/transactions"),
    ),
    Case(
        "a transaction does not see what others write after it began",
        [{"_id": 1}],
        _in_transaction(
            lambda c, s: [
                c.count_documents({}, session=s),
                c.delete_one({"_id": 1}).deleted_count,
                c.count_documents({}, session=s),
                c.count_documents({}),
            ]
        ),
        [1, 1, 1, 0],
        page("core/transactions-production-consideration"),
    ),
    Case(
        "a write in a transaction conflicts with one that came before it from outside",
        [{"_id": 1, "n": 0}],
        _in_transaction(
            lambda c, s: [
                c.count_documents({}, session=s),
                c.update_one({"_id": 1}, {"$inc": {"n": 1}}).modified_count,
                _code(lambda: c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=s)),
            ],
            commit=False,
        ),
        [1, 1, 112],
        page("core/transactions-production-consideration"),
    ),
    Case(
        "a write from outside waits for the transaction that changed the document",
        [{"_id": 1, "n": 0}],
        _in_transaction(
            lambda c, s: [
                c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=s).modified_count,
                _code(
                    lambda: c.database.command(
                        {"update": c.name, "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}], "maxTimeMS": 200}
                    )
                ),
            ]
        ),
        [1, 50],
        page("core/transactions-production-consideration"),
    ),
    Case(
        "a key that repeats within a transaction ends it",
        [{"_id": 1}],
        lambda c: [
            _in_transaction(
                lambda k, s: [
                    k.insert_one({"_id": 2}, session=s).inserted_id,
                    _code(lambda: k.insert_one({"_id": 1}, session=s)),
                    _code(lambda: k.insert_one({"_id": 3}, session=s)),
                ],
                commit=False,
            )(c),
            ids(c),
        ],
        [[2, 11000, 251], [1]],
        page("core/transactions"),
    ),
    Case(
        "commands that a transaction does not run are refused",
        [{"_id": 1}],
        lambda c: [
            refused(_in_transaction(lambda k, s: k.database.command({"count": k.name}, session=s)))(c),
            refused(_in_transaction(lambda k, s: k.database.list_collection_names(session=s)))(c),
            refused(_in_transaction(lambda k, s: list(k.list_indexes(session=s))))(c),
            refused(_in_transaction(lambda k, s: k.create_index("a", session=s)))(c),
        ],
        ["refused"] * 4,
        page("core/transactions"),
    ),
    Case(
        "a transaction does not write to a capped collection",
        [],
        made(
            "capped",
            refused(_in_transaction(lambda c, s: c.insert_one({"_id": 1}, session=s))),
            capped=True,
            size=4096,
        ),
        "refused",
        page("core/transactions"),
    ),
    Case(
        "a session that ends aborts its transaction",
        [{"_id": 1}],
        after(
            lambda c: _left_open(c),
            lambda c: [ids(c), c.update_one({"_id": 1}, {"$set": {"a": 2}}).modified_count],
        ),
        [[1], 1],
        page("core/transactions"),
    ),
]

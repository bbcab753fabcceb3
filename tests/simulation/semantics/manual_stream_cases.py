"""Change streams, as the manual describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import after
from .cases import (
    Case,
)
from .manual_calls import page, plain, refused, shown


def _events(act: Callable[[Any], Any], count: int, pick: Callable[[Any], Any], **options: Any) -> Callable[[Any], Any]:
    """What is picked of so many events that an act makes."""

    def run(collection: Any) -> Any:
        found: list[Any] = []
        with collection.watch(max_await_time_ms=100, **options) as stream:
            act(collection)
            for _ in range(20):
                if len(found) == count or not stream.alive:
                    break
                event = stream.try_next()
                if event is not None:
                    found.append(plain(pick(event)))
        return found

    return run


def _images(collection: Any) -> Any:
    return collection.database.command({"collMod": collection.name, "changeStreamPreAndPostImages": {"enabled": True}})


def _kind(event: Any) -> Any:
    return event["operationType"]


CASES = [
    Case(
        "an event of an insertion has the document, its key and its place",
        [],
        _events(
            lambda c: c.insert_one({"_id": 1, "a": {"b": 2}}),
            1,
            lambda e: [
                e["operationType"],
                e["fullDocument"],
                e["documentKey"],
                e["ns"]["coll"],
                "updateDescription" in e,
            ],
        ),
        [["insert", {"_id": 1, "a": {"b": 2}}, {"_id": 1}, "cases", False]],
        page("reference/change-events/insert"),
    ),
    Case(
        "an event of an update tells the fields that were changed and removed",
        [{"_id": 1, "a": {"b": 1, "c": 1}, "gone": 1, "t": [1, 2]}],
        _events(
            lambda c: c.update_one({}, {"$set": {"a.b": 2, "t.1": 5, "n": 1}, "$unset": {"gone": 1}}),
            1,
            lambda e: [
                e["operationType"],
                e["updateDescription"]["updatedFields"],
                e["updateDescription"]["removedFields"],
                "fullDocument" in e,
            ],
        ),
        [["update", {"a.b": 2, "n": 1, "t.1": 5}, ["gone"], False]],
        page("reference/change-events/update"),
    ),
    Case(
        "a replacement and a deletion are events of their own",
        [{"_id": 1, "a": 1}],
        _events(
            lambda c: [c.replace_one({"_id": 1}, {"b": 2}), c.delete_one({"_id": 1})],
            2,
            lambda e: [e["operationType"], e.get("fullDocument"), e["documentKey"]],
        ),
        [["replace", {"_id": 1, "b": 2}, {"_id": 1}], ["delete", None, {"_id": 1}]],
        page("reference/change-events/replace"),
    ),
    Case(
        "an updated document is looked up as it is now, an image of it is as it was then",
        [{"_id": 1, "n": 0}],
        lambda c: [
            _images(c)["ok"],
            *(
                _events(
                    lambda k: [k.update_one({}, {"$inc": {"n": 1}}), k.update_one({}, {"$inc": {"n": 1}})],
                    2,
                    lambda e: e["fullDocument"]["n"],
                    full_document=full,
                )(c)
                for full in ("updateLookup", "required")
            ),
        ],
        [1.0, [2, 2], [3, 4]],
        page("changeStreams"),
    ),
    Case(
        "documents from before a change are told where images are kept",
        [{"_id": 1, "n": 0}],
        after(
            _images,
            _events(
                lambda c: [c.update_one({}, {"$set": {"n": 5}}), c.delete_one({})],
                2,
                lambda e: [e["operationType"], e["fullDocumentBeforeChange"]],
                full_document_before_change="whenAvailable",
            ),
        ),
        [["update", {"_id": 1, "n": 0}], ["delete", {"_id": 1, "n": 5}]],
        page("changeStreams"),
    ),
    Case(
        "a document from before that is not kept is null, or an error where it is required",
        [{"_id": 1, "n": 0}],
        lambda c: [
            _events(
                lambda k: k.update_one({}, {"$inc": {"n": 5}}),
                1,
                lambda e: e.get("fullDocumentBeforeChange"),
                full_document_before_change="whenAvailable",
            )(c),
            refused(
                _events(
                    lambda k: k.update_one({}, {"$inc": {"n": 5}}), 1, _kind, full_document_before_change="required"
                )
            )(c),
        ],
        [[None], "refused"],
        page("changeStreams"),
    ),
    Case(
        "a dropped collection ends its stream",
        [{"_id": 1}],
        _events(lambda c: c.drop(), 3, _kind),
        ["drop", "invalidate"],
        page("reference/change-events/invalidate"),
    ),
    Case(
        "a stream goes on after an event",
        [],
        lambda c: shown(
            _events(lambda k: k.insert_many([{"_id": n} for n in (1, 2, 3)]), 3, lambda e: e["_id"])(c),
            lambda tokens: _events(
                lambda k: k.insert_one({"_id": 4}), 3, lambda e: e["documentKey"]["_id"], resume_after=tokens[0]
            )(c),
        ),
        [2, 3, 4],
        page("changeStreams"),
    ),
    Case(
        "a stream selects its events, but does not group them",
        [{"_id": 1}],
        lambda c: [
            _events(
                lambda k: [k.insert_one({"_id": 2}), k.delete_one({"_id": 1}), k.insert_one({"_id": 3, "v": 1})],
                2,
                lambda e: e["documentKey"]["_id"],
                pipeline=[{"$match": {"$or": [{"operationType": "delete"}, {"fullDocument.v": 1}]}}],
            )(c),
            refused(_events(lambda k: None, 1, _kind, pipeline=[{"$group": {"_id": None}}]))(c),
        ],
        [[1, 3], "refused"],
        page("changeStreams"),
    ),
]

"""The same operations through PyMongo and gmongo, on the same server, compared: results, exceptions, and commands.

This is the one file in the project that imports PyMongo beyond its `bson` package.
"""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import bson
import pymongo
import pymongo.errors
import pymongo.monitoring
import pytest
from bson.binary import STANDARD
from bson.codec_options import CodecOptions, TypeCodec, TypeRegistry
from bson.raw_bson import RawBSONDocument
from bson.son import SON

import gmongo
import gmongo.errors

from .recording import Recorder

Case = Callable[[Any, Any], Any]

DOCUMENTS = [{"_id": number, "kind": number % 3, "name": f"n{number}"} for number in range(10)]

# What only one session or connection knows a command by.
_VOLATILE = ("lsid", "$clusterTime", "txnNumber")
# Fields that say what the server does without them too; one driver sends them, the other saves the bytes.
_SAYS_NOTHING = (("multi", False), ("upsert", False), ("new", False), ("comment", None))


class DecimalCodec(TypeCodec):
    python_type = Decimal
    bson_type = float

    def transform_python(self, value: Any) -> Any:
        return float(value)

    def transform_bson(self, value: Any) -> Any:
        return Decimal(str(value))


REGISTRY = TypeRegistry([DecimalCodec()])


class PyMongoRecorder(pymongo.monitoring.CommandListener):
    def __init__(self) -> None:
        self.events: list[Any] = []

    def started(self, event: Any) -> None:
        self.events.append(event)

    def succeeded(self, event: Any) -> None:
        pass

    def failed(self, event: Any) -> None:
        pass

    def clear(self) -> None:
        self.events.clear()


class Driver(NamedTuple):
    module: Any
    client: Any
    recorder: Any


class Outcome(NamedTuple):
    returned: Any
    error: Exception | None
    commands: list[Any]
    left: list[str]


@pytest.fixture(scope="module")
def drivers(database: str) -> Iterator[tuple[Driver, Driver]]:
    theirs, ours = PyMongoRecorder(), Recorder()
    with (
        pymongo.MongoClient[Any](database, event_listeners=[theirs]) as their_client,
        gmongo.MongoClient[Any](database, event_listeners=[ours]) as our_client,
    ):
        yield Driver(pymongo, their_client, theirs), Driver(gmongo, our_client, ours)


def run(driver: Driver, case: Case, name: str) -> Outcome:
    """Run a case on a fresh collection of the database `name`, which is gone afterwards."""
    collection = driver.client[name].things
    collection.insert_many([dict(document) for document in DOCUMENTS])
    driver.recorder.clear()
    returned, error = None, None
    try:
        returned = plain(case(driver.module, collection))
    except Exception as raised:
        error = raised
    # A cursor that is dropped is killed by either driver in its own time.
    events = [event for event in driver.recorder.events if event.command_name != "killCursors"]
    commands = [command_of(event) for event in events]
    left = sorted(str(plain(document)) for document in collection.find())
    driver.client.drop_database(name)
    return Outcome(returned, error, commands, left)


def command_of(event: Any) -> Any:
    command = {name: value for name, value in event.command.items() if name not in _VOLATILE}
    for name in ("getMore", "cursors"):
        if name in command:
            command[name] = "an id"
    return event.command_name, event.database_name, plain(without_defaults(command))


def without_defaults(value: Any) -> Any:
    if isinstance(value, Mapping) and not isinstance(value, RawBSONDocument):
        kept = {name: without_defaults(item) for name, item in value.items() if (name, item) not in _SAYS_NOTHING}
        return type(value)(kept) if isinstance(value, (SON, OrderedDict)) else kept
    return [without_defaults(item) for item in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """What must be the same in both drivers: types by their names, values, and properties."""
    kind = type(value)
    if isinstance(value, bson.ObjectId):
        return "an ObjectId"
    if isinstance(value, RawBSONDocument):
        return kind.__name__, bson.decode(value.raw)
    if isinstance(value, Mapping):
        return kind.__name__, {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return kind.__name__, [plain(item) for item in value]
    if kind.__module__.endswith((".results", ".client_session")):
        return kind.__name__, {name: plain(property_of(value, name)) for name in properties(kind)}
    if kind.__module__.partition(".")[0] in ("pymongo", "gmongo"):
        return kind.__name__, getattr(value, "name", None), getattr(value, "full_name", None)
    return kind.__name__, value


def properties(kind: type) -> list[str]:
    public = [name for name in dir(kind) if not name.startswith("_")]
    return [name for name in public if isinstance(getattr(kind, name), property)]


def property_of(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except Exception as error:
        return type(error).__name__


def names_of(error: Exception | None) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def compare(drivers: tuple[Driver, Driver], case: Case) -> None:
    name = f"same_{uuid.uuid4().hex[:12]}"
    theirs, ours = (run(driver, case, name) for driver in drivers)
    if theirs.error is None:
        assert ours.error is None, f"PyMongo returns {theirs.returned!r}"
    else:
        assert ours.error is not None, f"PyMongo raises {theirs.error!r}, gmongo returns {ours.returned!r}"
        assert type(theirs.error).__name__ in names_of(ours.error), (theirs.error, ours.error)
        assert getattr(ours.error, "code", None) == getattr(theirs.error, "code", None)
        assert plain(getattr(ours.error, "details", None)) == plain(getattr(theirs.error, "details", None))
        if isinstance(theirs.error, pymongo.errors.OperationFailure):
            assert without_ids(ours.error) == without_ids(theirs.error)
    assert ours.commands == theirs.commands
    assert ours.returned == theirs.returned
    assert ours.left == theirs.left


def without_ids(error: Exception | None) -> str:
    return re.sub(r"ObjectId\('\w+'\)", "an ObjectId", str(error))


def drain(cursor: Any) -> list[Any]:
    return list(cursor)


def counted(cursor: Any) -> Any:
    """The documents of a cursor, and what it tells of itself on the way."""
    before = (cursor.alive, cursor.retrieved, cursor.cursor_id)
    first = next(cursor)
    between = (cursor.alive, cursor.retrieved)
    rest = list(cursor)
    return before, first, between, rest, (cursor.alive, cursor.retrieved, cursor.cursor_id)


def ids(cursor: Any) -> list[Any]:
    return [document["_id"] for document in cursor]


def with_codec(collection: Any, **options: Any) -> Any:
    return collection.with_options(codec_options=CodecOptions(**options))


def in_session(collection: Any) -> Any:
    with collection.database.client.start_session() as session:
        return collection.find_one({"_id": 1}, session=session), session.has_ended, session.in_transaction


def in_ended_session(collection: Any) -> Any:
    session = collection.database.client.start_session()
    session.end_session()
    return collection.find_one(session=session)


def in_session_unacknowledged(module: Any, collection: Any) -> Any:
    with collection.database.client.start_session() as session:
        unacknowledged = collection.with_options(write_concern=module.WriteConcern(w=0))
        return unacknowledged.insert_one({"_id": 60}, session=session)


def changed_late(cursor: Any) -> Any:
    next(cursor)
    return cursor.limit(1)


WRITES: dict[str, Case] = {
    "insert_one": lambda m, c: c.insert_one({"a": 1}),
    "insert_one with _id": lambda m, c: c.insert_one({"_id": "x", "a": 1}),
    "insert_one with options": lambda m, c: c.insert_one({"a": 1}, bypass_document_validation=True, comment="why"),
    "insert_one does not validate by default": lambda m, c: c.insert_one({}, bypass_document_validation=False),
    "insert_one of SON": lambda m, c: c.insert_one(SON([("z", 1), ("a", 2)])),
    "insert_one raw": lambda m, c: c.insert_one(RawBSONDocument(bson.encode({"_id": 77}))),
    "insert_one twice": lambda m, c: c.insert_one({"_id": 1}),
    "insert_many": lambda m, c: c.insert_many([{"a": 1}, {"_id": 50}]),
    "insert_many of an iterator": lambda m, c: c.insert_many({"_id": n} for n in range(60, 63)),
    "insert_many unordered with options": lambda m, c: c.insert_many([{"a": 1}], ordered=False, comment={"b": 1}),
    "insert_many ordered with duplicates": lambda m, c: c.insert_many([{"_id": 50}, {"_id": 1}, {"_id": 51}]),
    "insert_many unordered with duplicates": lambda m, c: c.insert_many(
        [{"_id": 1}, {"_id": 50}, {"_id": 2}], ordered=False
    ),
    "update_one": lambda m, c: c.update_one({"_id": 1}, {"$set": {"a": 1}}),
    "update_one without a match": lambda m, c: c.update_one({"_id": 100}, {"$set": {"a": 1}}),
    "update_one upsert": lambda m, c: c.update_one({"_id": 100}, {"$set": {"a": 1}}, upsert=True),
    "update_one upsert of a match": lambda m, c: c.update_one({"_id": 1}, {"$set": {"a": 1}}, upsert=True),
    "update_one with options": lambda m, c: c.update_one(
        {"_id": 1},
        {"$set": {"a": 1}},
        bypass_document_validation=True,
        collation={"locale": "fr"},
        hint=[("_id", 1)],
        let={"x": 1},
        sort={"kind": 1},
        comment="why",
    ),
    "update_one with array filters": lambda m, c: c.update_one(
        {"_id": 1}, {"$set": {"a.$[x]": 1}}, array_filters=[{"x": 1}]
    ),
    "update_one with an unknown operator": lambda m, c: c.update_one({}, {"$nonsense": {"a": 1}}),
    "update_many": lambda m, c: c.update_many({"kind": 1}, {"$inc": {"n": 1}}, comment="why"),
    "update_many upsert": lambda m, c: c.update_many({"_id": "new"}, {"$set": {"n": 1}}, upsert=True, hint="_id_"),
    "replace_one": lambda m, c: c.replace_one({"_id": 1}, {"z": 1}),
    "replace_one upsert": lambda m, c: c.replace_one({"_id": 100}, {"z": 1}, upsert=True),
    "replace_one by nothing": lambda m, c: c.replace_one({"_id": 1}, {}),
    "replace_one with options": lambda m, c: c.replace_one(
        {"_id": 1}, {"z": 1}, hint={"_id": 1}, let={"x": 1}, sort={"kind": -1}, comment=5
    ),
    "delete_one": lambda m, c: c.delete_one({"_id": 1}),
    "delete_one with options": lambda m, c: c.delete_one(
        {"_id": 1}, collation=m.collation.Collation("fr", strength=2), hint="_id_", let={"x": 1}, comment="why"
    ),
    "delete_many": lambda m, c: c.delete_many({"kind": 2}),
    "delete_many of nothing": lambda m, c: c.delete_many({"kind": 7}, comment="why"),
    "find_one_and_delete": lambda m, c: c.find_one_and_delete({"_id": 1}, projection=["name"], sort=[("_id", -1)]),
    "find_one_and_delete without a match": lambda m, c: c.find_one_and_delete({"_id": 100}),
    "find_one_and_update": lambda m, c: c.find_one_and_update({"_id": 1}, {"$set": {"a": 1}}),
    "find_one_and_update after": lambda m, c: c.find_one_and_update(
        {"_id": 1}, {"$set": {"a": 1}}, return_document=m.ReturnDocument.AFTER, hint="_id_", let={"x": 1}, comment="y"
    ),
    "find_one_and_update upsert": lambda m, c: c.find_one_and_update({"_id": 100}, {"$set": {"a": 1}}, upsert=True),
    "find_one_and_update with array filters": lambda m, c: c.find_one_and_update(
        {"_id": 1}, {"$set": {"a.$[x]": 1}}, array_filters=[{"x": 1}], maxTimeMS=900, bypassDocumentValidation=True
    ),
    "find_one_and_replace": lambda m, c: c.find_one_and_replace({"_id": 1}, {"a": 1}, {"a": 1, "_id": 0}),
    "find_one_and_replace after": lambda m, c: c.find_one_and_replace(
        {"_id": 1}, {"a": 1}, return_document=True, collation={"locale": "fr"}
    ),
    "a write concern": lambda m, c: c.with_options(write_concern=m.WriteConcern(w=1, j=True)).insert_one({"_id": 70}),
    "a write concern with find_one_and": lambda m, c: c.with_options(
        write_concern=m.WriteConcern(w=1, wtimeout=100)
    ).find_one_and_delete({"_id": 1}),
}

BULKS: dict[str, Case] = {
    "every model": lambda m, c: c.bulk_write(
        [
            m.InsertOne({"_id": "b1"}),
            m.UpdateOne({"_id": "b1"}, {"$set": {"a": 1}}),
            m.UpdateOne({"_id": "b2"}, {"$set": {"a": 1}}, upsert=True),
            m.ReplaceOne({"_id": "b1"}, {"a": 5}),
            m.ReplaceOne({"_id": "b3"}, {"a": 5}, upsert=True),
            m.UpdateMany({"kind": 1}, {"$set": {"v": 1}}),
            m.DeleteOne({"_id": "b1"}),
            m.DeleteMany({"kind": 2}),
        ]
    ),
    "unordered": lambda m, c: c.bulk_write(
        [m.InsertOne({"_id": "b1"}), m.DeleteOne({"_id": 1}), m.InsertOne({"_id": "b2"}), m.DeleteOne({"_id": 2})],
        ordered=False,
    ),
    "options": lambda m, c: c.bulk_write(
        [
            m.UpdateOne({"_id": 1}, {"$set": {"a": 1}}, hint="_id_", collation={"locale": "fr"}, sort={"kind": 1}),
            m.UpdateMany({"_id": 1}, {"$set": {"a.$[x]": 1}}, array_filters=[{"x": 1}], hint=[("_id", 1)]),
            m.ReplaceOne({"_id": 1}, {"a": 1}, collation={"locale": "fr"}, hint="_id_", sort={"kind": 1}),
            m.DeleteOne({"_id": 1}, collation={"locale": "fr"}, hint="_id_"),
        ],
        bypass_document_validation=True,
        comment="why",
        let={"x": 1},
    ),
    "upserts at their places": lambda m, c: c.bulk_write(
        [m.DeleteOne({"_id": 1}), m.UpdateOne({"_id": "u"}, {"$set": {"a": 1}}, upsert=True)]
    ),
    "ordered, with an error": lambda m, c: c.bulk_write(
        [m.DeleteOne({"_id": 1}), m.InsertOne({"_id": 2}), m.DeleteOne({"_id": 3})]
    ),
    "unordered, with errors": lambda m, c: c.bulk_write(
        [
            m.InsertOne({"_id": 1}),
            m.UpdateOne({"_id": 1}, {"$nonsense": {"a": 1}}),
            m.InsertOne({"_id": 2}),
            m.UpdateOne({"_id": "u"}, {"$set": {"a": 1}}, upsert=True),
        ],
        ordered=False,
    ),
    "nothing": lambda m, c: c.bulk_write([]),
    "no list": lambda m, c: c.bulk_write({"a": 1}),
    "no models": lambda m, c: c.bulk_write([{"insertOne": 1}]),
    "a generator": lambda m, c: c.bulk_write(m.DeleteOne({"_id": n}) for n in range(3)),
}

READS: dict[str, Case] = {
    "find": lambda m, c: drain(c.find()),
    "find with a filter": lambda m, c: drain(c.find({"kind": 1})),
    "find with projection": lambda m, c: drain(c.find({"kind": 1}, {"name": 1, "_id": 0})),
    "find with a list of fields": lambda m, c: drain(c.find({"kind": 1}, ["name"])),
    "find with no field": lambda m, c: drain(c.find({"kind": 1}, [])),
    "find with an empty projection": lambda m, c: drain(c.find({"kind": 1}, {})),
    "find by parameters": lambda m, c: drain(
        c.find(
            {},
            skip=1,
            limit=3,
            sort=[("kind", -1), ("name", 1)],
            batch_size=2,
            hint="_id_",
            comment="why",
            collation={"locale": "fr"},
            max_time_ms=900,
            allow_disk_use=True,
            let={"x": 1},
            no_cursor_timeout=True,
            allow_partial_results=True,
        )
    ),
    "find by methods": lambda m, c: drain(
        c.find()
        .skip(1)
        .limit(3)
        .sort("kind", m.DESCENDING)
        .batch_size(2)
        .hint([("_id", m.ASCENDING)])
        .comment("why")
        .collation(m.collation.Collation("fr"))
        .max_time_ms(900)
        .allow_disk_use(True)
        .add_option(16)
    ),
    "find between bounds": lambda m, c: drain(c.find(hint=[("_id", 1)], limit=1).min([("_id", 2)]).max([("_id", 4)])),
    "find keys only": lambda m, c: drain(c.find({"_id": 1}, return_key=True, show_record_id=True)),
    "find where": lambda m, c: drain(c.find({"_id": 1}).where("this.a == 1").limit(1)),
    "sort by a field": lambda m, c: ids(c.find().sort("name")),
    "sort by fields": lambda m, c: ids(c.find(sort=["kind", ("name", -1)])),
    "sort by a mapping": lambda m, c: ids(c.find().sort({"kind": 1, "name": -1})),
    "batches": lambda m, c: counted(c.find(batch_size=3)),
    "batches of a limit": lambda m, c: counted(c.find(batch_size=3, limit=5)),
    "a batch as large as the limit": lambda m, c: counted(c.find(batch_size=5, limit=5)),
    "a batch larger than the limit": lambda m, c: counted(c.find(batch_size=7, limit=5)),
    "a batch of one": lambda m, c: counted(c.find(batch_size=1, limit=2)),
    "a negative limit": lambda m, c: counted(c.find(limit=-4)),
    "everything in one batch": lambda m, c: counted(c.find()),
    "nothing found": lambda m, c: drain(c.find({"kind": 7})),
    "an index": lambda m, c: c.find(sort=[("name", 1)])[3],
    "an index beyond": lambda m, c: c.find()[30],
    "a slice": lambda m, c: drain(c.find(sort=[("name", 1)])[2:5]),
    "a slice from": lambda m, c: drain(c.find(sort=[("name", 1)])[7:]),
    "a slice to": lambda m, c: drain(c.find(sort=[("name", 1)])[:2]),
    "an empty slice": lambda m, c: drain(c.find()[2:2]),
    "a slice of a slice": lambda m, c: drain(c.find(sort=[("name", 1)], skip=4, limit=4)[1:3]),
    "an index after skip": lambda m, c: c.find(sort=[("name", 1)]).skip(4)[1],
    "to_list": lambda m, c: c.find().to_list(),
    "to_list of some": lambda m, c: c.find(batch_size=2).to_list(3),
    "to_list of more than there is": lambda m, c: c.find().to_list(50),
    "cursor distinct": lambda m, c: c.find({"kind": 1}).comment("why").max_time_ms(900).distinct("name"),
    "raw batches": lambda m, c: drain(c.find_raw_batches(batch_size=4)),
    "raw batches of nothing": lambda m, c: drain(c.find_raw_batches({"kind": 7})),
    "find_one": lambda m, c: c.find_one(),
    "find_one by _id": lambda m, c: c.find_one(3),
    "find_one by filter": lambda m, c: c.find_one({"kind": 2}, {"name": 1}, sort=[("name", -1)], comment="why"),
    "find_one with options": lambda m, c: c.find_one({}, skip=2, batch_size=4, hint="_id_", max_time_ms=900),
    "find_one with a limit": lambda m, c: c.find_one({}, limit=5),
    "find_one of nothing": lambda m, c: c.find_one({"kind": 7}),
    "find_one in a session": lambda m, c: in_session(c),
    "count_documents": lambda m, c: c.count_documents({"kind": 1}),
    "count_documents with options": lambda m, c: c.count_documents(
        {}, skip=2, limit=5, hint=[("_id", 1)], collation={"locale": "fr"}, maxTimeMS=900, comment="why"
    ),
    "count_documents of nothing": lambda m, c: c.count_documents({"kind": 7}),
    "estimated_document_count": lambda m, c: c.estimated_document_count(comment="why", maxTimeMS=900),
    "distinct": lambda m, c: c.distinct("kind"),
    "distinct with options": lambda m, c: c.distinct(
        "name", {"kind": 1}, comment="why", hint="_id_", maxTimeMS=900, collation={"locale": "fr"}
    ),
    "aggregate": lambda m, c: drain(c.aggregate([{"$group": {"_id": "$kind", "n": {"$sum": 1}}}])),
    "aggregate in batches": lambda m, c: drain(c.aggregate([{"$match": {}}], batchSize=4)),
    "aggregate with options": lambda m, c: drain(
        c.aggregate([{"$match": {"kind": 1}}], let={"x": 1}, comment="why", hint={"_id": 1}, allowDiskUse=True)
    ),
    "aggregate with an unknown stage": lambda m, c: c.aggregate([{"$nonsense": 1}]),
    "aggregate to_list": lambda m, c: c.aggregate([{"$sort": {"name": 1}}, {"$limit": 2}]).to_list(),
    "aggregate try_next": lambda m, c: c.aggregate([{"$match": {"kind": 7}}]).try_next(),
    "document class": lambda m, c: with_codec(c, document_class=OrderedDict).find_one(),
    "documents in find_one_and": lambda m, c: with_codec(c, document_class=SON).find_one_and_delete({"_id": 1}),
    "raw documents": lambda m, c: drain(with_codec(c, document_class=RawBSONDocument).find({"kind": 1})),
    "aware datetimes": lambda m, c: (
        c.insert_one({"_id": 60, "at": datetime(2024, 5, 6, 7, 8, 9, 123000)}),
        with_codec(c, tz_aware=True, tzinfo=timezone(timedelta(hours=2))).find_one(60),
        c.find_one(60),
    ),
    "a UUID": lambda m, c: (
        with_codec(c, uuid_representation=STANDARD).insert_one({"_id": 60, "a": uuid.UUID(int=1)}),
        with_codec(c, uuid_representation=STANDARD).find_one(60),
        with_codec(c, uuid_representation=STANDARD).find({"a": uuid.UUID(int=1)}).to_list(),
        c.find_one(60),
    ),
    "types of the application": lambda m, c: (
        with_codec(c, type_registry=REGISTRY).insert_one({"_id": 60, "price": Decimal("1.50")}),
        with_codec(c, type_registry=REGISTRY).find_one(60),
        with_codec(c, type_registry=REGISTRY).find_one_and_update({"_id": 60}, {"$set": {"cost": Decimal("2")}}),
        with_codec(c, type_registry=REGISTRY).distinct("price"),
        with_codec(c, type_registry=REGISTRY).aggregate([{"$match": {"_id": 60}}]).to_list(),
        c.find_one(60),
    ),
    "an empty sort in find_one_and": lambda m, c: c.find_one_and_delete({"_id": 1}, sort=[]),
    "an empty list of fields in find_one_and": lambda m, c: c.find_one_and_delete({"_id": 1}, projection=[]),
    "an empty sort in find_one": lambda m, c: c.find_one({}, sort=[]),
    "a set of fields": lambda m, c: drain(c.find({"kind": 1}, ("name", "kind"))),
    "a read concern": lambda m, c: c.with_options(read_concern=m.read_concern.ReadConcern("local")).find_one(),
    "a read preference": lambda m, c: c.with_options(read_preference=m.ReadPreference.SECONDARY).find_one(),
}

ADMINISTRATION: dict[str, Case] = {
    "create_index": lambda m, c: c.create_index("name"),
    "create_index with options": lambda m, c: c.create_index(
        [("kind", 1), ("name", -1)],
        name="mine",
        unique=True,
        sparse=True,
        comment="why",
        maxTimeMS=900,
        collation={"locale": "fr"},
        expireAfterSeconds=5,
    ),
    "create_index of a type": lambda m, c: c.create_index([("name", m.TEXT)], background=True),
    "create_indexes": lambda m, c: c.create_indexes([m.IndexModel("name"), m.IndexModel({"kind": -1}, name="k")]),
    "list_indexes": lambda m, c: [dict(index, key=dict(index["key"])) for index in c.list_indexes(comment="why")],
    "index_information": lambda m, c: (c.create_index("name", unique=True), c.index_information(comment="why")),
    "drop_index by name": lambda m, c: (c.create_index("name"), c.drop_index("name_1", comment="why")),
    "drop_index by keys": lambda m, c: (c.create_index("name"), c.drop_index([("name", 1)], maxTimeMS=900)),
    "drop_indexes": lambda m, c: (c.create_index("name"), c.drop_indexes(comment="why"), c.index_information()),
    "create_collection": lambda m, c: c.database.create_collection("more"),
    "create_collection with options": lambda m, c: c.database.create_collection(
        "more", check_exists=False, capped=True, max=10, collation={"locale": "fr"}
    ),
    "create_collection twice": lambda m, c: (c.database.create_collection("m"), c.database.create_collection("m")),
    "list_collection_names": lambda m, c: c.database.list_collection_names(),
    "list_collection_names filtered": lambda m, c: c.database.list_collection_names(filter={"name": "things"}),
    "list_collection_names filtered by type": lambda m, c: c.database.list_collection_names(
        filter={"type": "collection"}, comment="why"
    ),
    "list_collections": lambda m, c: drain(c.database.list_collections(comment="why")),
    "collection options": lambda m, c: c.options(comment="why"),
    "drop": lambda m, c: (c.drop(comment="why"), c.database.list_collection_names()),
    "drop what is not there": lambda m, c: c.database.nothing.drop(),
    "drop_collection": lambda m, c: c.database.drop_collection("things"),
    "list_databases": lambda m, c: (
        c.database.name in [each["name"] for each in c.database.client.list_databases(comment="why")]
    ),
    "list_database_names": lambda m, c: c.database.name in c.database.client.list_database_names(),
    "drop_database": lambda m, c: c.database.client.drop_database(c.database),
    "command": lambda m, c: c.database.command("ping"),
    "command with fields": lambda m, c: c.database.command("count", "things", query={"kind": 1}, comment="why"),
    "command as a document": lambda m, c: c.database.command(SON([("count", "things"), ("query", {})])),
    "command with document class": lambda m, c: c.database.command("ping", codec_options=CodecOptions(SON)),
    "a command that fails": lambda m, c: c.database.command("aggregate", "things", pipeline=[{"$no": 1}], cursor={}),
    "an unchecked command that fails": lambda m, c: c.database.command(
        "aggregate", "things", pipeline=[{"$no": 1}], cursor={}, check=False
    ),
    "cursor_command": lambda m, c: drain(c.database.cursor_command("find", "things", batchSize=4)),
    "server_info": lambda m, c: c.database.client.server_info(),
    "dereference": lambda m, c: c.database.dereference(bson.DBRef("things", 3)),
    "a dotted collection": lambda m, c: (c.sub.full_name, c.sub["x.y"].name, c.sub.insert_one({"_id": 1})),
}

BAD_INPUTS: dict[str, Case] = {
    "insert_one of a list": lambda m, c: c.insert_one([{"a": 1}]),
    "insert_one of None": lambda m, c: c.insert_one(None),
    "insert_one of a non-string key": lambda m, c: c.insert_one({1: 1}),
    "insert_one of an object": lambda m, c: c.insert_one({"a": object()}),
    "insert_one of a null in a key": lambda m, c: c.insert_one({"a\x00b": 1}),
    "insert_one of a huge integer": lambda m, c: c.insert_one({"a": 2**64}),
    "insert_one of a huge document": lambda m, c: c.insert_one({"_id": "huge", "a": b"x" * (17 << 20)}),
    "insert_one of a UUID": lambda m, c: c.insert_one({"_id": 60, "a": uuid.UUID(int=1)}),
    "insert_one of a set": lambda m, c: c.insert_one({"_id": 60, "a": {1, 2}}),
    "insert_many of nothing": lambda m, c: c.insert_many([]),
    "insert_many of a document": lambda m, c: c.insert_many({"a": 1}),
    "insert_many of numbers": lambda m, c: c.insert_many([1, 2]),
    "insert_many of a number": lambda m, c: c.insert_many(5),
    "insert_many of an empty iterator": lambda m, c: c.insert_many(iter(())),
    "insert_many of an object in one": lambda m, c: c.insert_many([{"_id": 60}, {"a": object()}]),
    "update_one by a replacement": lambda m, c: c.update_one({}, {"a": 1}),
    "update_one by nothing": lambda m, c: c.update_one({}, {}),
    "update_one by a string": lambda m, c: c.update_one({}, "x"),
    "update_one by an empty pipeline": lambda m, c: c.update_one({}, []),
    "update_one of a string": lambda m, c: c.update_one("x", {"$set": {"a": 1}}),
    "update_one with a string upsert": lambda m, c: c.update_one({}, {"$set": {"a": 1}}, upsert="yes"),
    "update_one with bad array filters": lambda m, c: c.update_one({}, {"$set": {"a": 1}}, array_filters={"x": 1}),
    "update_one with a bad hint": lambda m, c: c.update_one({}, {"$set": {"a": 1}}, hint=5),
    "update_one with a bad collation": lambda m, c: c.update_one({}, {"$set": {"a": 1}}, collation=5),
    "update_one with a bad sort": lambda m, c: c.update_one({}, {"$set": {"a": 1}}, sort=5),
    "update_one with a bad let": lambda m, c: c.update_one({}, {"$set": {"a": 1}}, let=5),
    "update_many with a string upsert": lambda m, c: c.update_many({}, {"$set": {"a": 1}}, upsert="yes"),
    "replace_one by operators": lambda m, c: c.replace_one({}, {"$set": {"a": 1}}),
    "replace_one by a list": lambda m, c: c.replace_one({}, [1]),
    "replace_one with a string upsert": lambda m, c: c.replace_one({}, {"a": 1}, upsert="yes"),
    "delete_one of None": lambda m, c: c.delete_one(None),
    "delete_many of a string": lambda m, c: c.delete_many("x"),
    "delete_many with a bad let": lambda m, c: c.delete_many({}, let=5),
    "delete_many with a bad hint": lambda m, c: c.delete_many({}, hint=5),
    "find_one_and_update by a replacement": lambda m, c: c.find_one_and_update({}, {"a": 1}),
    "find_one_and_update with a string upsert": lambda m, c: c.find_one_and_update({}, {"$set": {"a": 1}}, upsert="y"),
    "find_one_and_update with a bad let": lambda m, c: c.find_one_and_update({}, {"$set": {"a": 1}}, let=5),
    "find_one_and_replace by operators": lambda m, c: c.find_one_and_replace({}, {"$set": {"a": 1}}),
    "find_one_and_delete of a string": lambda m, c: c.find_one_and_delete("x"),
    "find of a list": lambda m, c: c.find([1]),
    "find with a bad projection": lambda m, c: c.find({}, 5),
    "find with a string skip": lambda m, c: c.find({}, skip="1"),
    "find with a float limit": lambda m, c: c.find({}, limit=1.5),
    "find with a negative batch size": lambda m, c: c.find({}, batch_size=-1),
    "find with a string batch size": lambda m, c: c.find({}, batch_size="1"),
    "find with an empty sort": lambda m, c: drain(c.find({}, sort=[])),
    "find with a bad sort": lambda m, c: c.find({}, sort=5),
    "find with a bad hint": lambda m, c: c.find({}, hint=5),
    "find with a bad cursor type": lambda m, c: c.find({}, cursor_type=77),
    "find with a bad collation": lambda m, c: c.find({}, collation="fr"),
    "find with a bad flag": lambda m, c: c.find({}, no_cursor_timeout="yes"),
    "find with a bad let": lambda m, c: c.find({}, let=5),
    "find with an unknown option": lambda m, c: c.find({}, fields=["a"]),
    "find with bad bounds": lambda m, c: c.find({}).min("a"),
    "find with a bad where": lambda m, c: c.find({}).where(5),
    "max_time_ms of a string": lambda m, c: c.find().max_time_ms("x"),
    "max_time_ms of a string as an option": lambda m, c: c.find(max_time_ms="x"),
    "allow_disk_use of a string": lambda m, c: c.find().allow_disk_use("x"),
    "allow_disk_use of a string as an option": lambda m, c: c.find(allow_disk_use="x"),
    "add_option of a string": lambda m, c: c.find().add_option("x"),
    "sort with a bad direction": lambda m, c: c.find().sort("a", 1.5),
    "sort by an empty list": lambda m, c: c.find().sort([]),
    "a negative index": lambda m, c: c.find()[-1],
    "a string index": lambda m, c: c.find()["a"],
    "a backward slice": lambda m, c: c.find()[5:2],
    "a slice with a step": lambda m, c: c.find()[1:5:2],
    "a negative slice": lambda m, c: c.find()[-3:],
    "an index of raw batches": lambda m, c: c.find_raw_batches()[0],
    "to_list of zero": lambda m, c: c.find().to_list(0),
    "distinct of a number": lambda m, c: c.distinct(5),
    "aggregate of a document": lambda m, c: c.aggregate({"$match": {}}),
    "aggregate with a bad let": lambda m, c: c.aggregate([], let=5),
    "create_index of nothing": lambda m, c: c.create_index([]),
    "create_index of a number": lambda m, c: c.create_index(5),
    "create_index with a bad direction": lambda m, c: c.create_index([("a", None)]),
    "create_indexes of dicts": lambda m, c: c.create_indexes([{"key": {"a": 1}}]),
    "create_indexes of nothing": lambda m, c: c.create_indexes([]),
    "drop_index of a number": lambda m, c: c.drop_index(5),
    "rename to a number": lambda m, c: c.rename(5),
    "rename to nothing": lambda m, c: c.rename(""),
    "rename to dots": lambda m, c: c.rename("a..b"),
    "rename to a dollar": lambda m, c: c.rename("a$b"),
    "rename to a leading dot": lambda m, c: c.rename(".a"),
    "a collection called by a number": lambda m, c: c.database[5],
    "a collection called nothing": lambda m, c: c.database[""],
    "a collection with a null": lambda m, c: c.database["a\x00b"],
    "a private attribute of a collection": lambda m, c: c._private,
    "a private attribute of a database": lambda m, c: c.database._private,
    "a private attribute of a client": lambda m, c: c.database.client._private,
    "a database called by a number": lambda m, c: c.database.client[5],
    "a database with a dot": lambda m, c: c.database.client["a.b"],
    "a database called nothing": lambda m, c: c.database.client[""],
    "truth of a collection": lambda m, c: bool(c),
    "truth of a database": lambda m, c: bool(c.database),
    "a collection called as a method": lambda m, c: c.insert_everything(),
    "a database called as a method": lambda m, c: c.database.client.nonsense(),
    "iteration over a collection": lambda m, c: iter(c),
    "next of a database": lambda m, c: next(c.database),
    "drop_collection of a number": lambda m, c: c.database.drop_collection(5),
    "drop_database of a number": lambda m, c: c.database.client.drop_database(5),
    "validate_collection of a number": lambda m, c: c.database.validate_collection(5),
    "command of a number": lambda m, c: c.database.command(5),
    "dereference of a string": lambda m, c: c.database.dereference("x"),
    "dereference into another database": lambda m, c: c.database.dereference(bson.DBRef("a", 1, "other")),
    "with_options of a string": lambda m, c: c.with_options(write_concern="x"),
    "with_options of a bad codec": lambda m, c: c.with_options(codec_options="x"),
    "no default database": lambda m, c: c.database.client.get_default_database(),
    "options after the query": lambda m, c: changed_late(c.find()),
    "an ended session": lambda m, c: in_ended_session(c),
    "a session of a string": lambda m, c: c.insert_one({"_id": 60}, session="s"),
    "an InsertOne of a list": lambda m, c: c.bulk_write([m.InsertOne([1])]),
    "an UpdateOne by a replacement": lambda m, c: c.bulk_write([m.UpdateOne({}, {"a": 1})]),
    "an UpdateOne with a string upsert": lambda m, c: m.UpdateOne({}, {"$set": {"a": 1}}, upsert="yes"),
    "a ReplaceOne by operators": lambda m, c: c.bulk_write([m.ReplaceOne({}, {"$set": {"a": 1}})]),
    "an IndexModel of nothing": lambda m, c: m.IndexModel([]),
    "an explicit session of an unacknowledged write": lambda m, c: in_session_unacknowledged(m, c),
    "an invalid write concern": lambda m, c: m.WriteConcern(w=0, j=True),
    "an unknown option of the client": lambda m, c: m.MongoClient(nonsense=1, connect=False),
    "a host of a number": lambda m, c: m.MongoClient(5, connect=False),
    "a port of a string": lambda m, c: m.MongoClient("localhost", "27017", connect=False),
    "an invalid URI": lambda m, c: m.MongoClient("mongodb://", connect=False),
    "an invalid document_class": lambda m, c: m.MongoClient(document_class=5, connect=False),
    "an invalid tz_aware": lambda m, c: m.MongoClient(tz_aware="x", connect=False),
    "a pool of no size": lambda m, c: m.MongoClient(maxPoolSize=-1, connect=False),
}


# PyMongo lets these through to the server, or fails inside; gmongo says at once what is wrong.
REFUSED: dict[str, Case] = {
    "find with a string projection": lambda m, c: c.find({}, "name"),
    "find with a negative skip": lambda m, c: c.find({}, skip=-1),
    "find with a bad session": lambda m, c: c.find({}, session="s"),
    "count_documents of None": lambda m, c: c.count_documents(None),
    "count_documents of a string": lambda m, c: c.count_documents("x"),
    "distinct with a bad filter": lambda m, c: c.distinct("a", "x"),
    "a DeleteOne of None": lambda m, c: c.bulk_write([m.DeleteOne(None)]),
}


def _parameters(cases: dict[str, Case]) -> list[Any]:
    return [pytest.param(case, id=name) for name, case in cases.items()]


@pytest.mark.parametrize("case", _parameters(WRITES))
def test_writes_do_the_same(drivers: tuple[Driver, Driver], case: Case) -> None:
    compare(drivers, case)


@pytest.mark.parametrize("case", _parameters(BULKS))
def test_bulk_writes_do_the_same(drivers: tuple[Driver, Driver], case: Case) -> None:
    compare(drivers, case)


@pytest.mark.parametrize("case", _parameters(READS))
def test_reads_return_the_same(drivers: tuple[Driver, Driver], case: Case) -> None:
    compare(drivers, case)


@pytest.mark.parametrize("case", _parameters(ADMINISTRATION))
def test_administration_does_the_same(drivers: tuple[Driver, Driver], case: Case) -> None:
    compare(drivers, case)


@pytest.mark.parametrize("case", _parameters(BAD_INPUTS))
def test_bad_input_is_met_alike(drivers: tuple[Driver, Driver], case: Case) -> None:
    compare(drivers, case)


@pytest.mark.parametrize("case", _parameters(REFUSED))
def test_gmongo_refuses_what_pymongo_lets_through(drivers: tuple[Driver, Driver], case: Case) -> None:
    outcome = run(drivers[1], case, f"same_{uuid.uuid4().hex[:12]}")
    assert isinstance(outcome.error, (TypeError, ValueError))
    assert outcome.commands == []
    assert len(outcome.left) == len(DOCUMENTS)

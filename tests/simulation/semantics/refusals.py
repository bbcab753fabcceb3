"""What the calls of further cases are made of: refusals by their names, and commands as drivers send them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bson import Decimal128

from .calls import Call, after, command, stored
from .cases import OPERATION_FAILURES

QUERY = "server: jstests/core/query"
WRITE = "server: jstests/core/write"
DDL = "server: jstests/core/ddl"
CATALOG = "server: jstests/core/catalog"
INDEX = "server: jstests/core/index"
EXPRESSIONS = "server: jstests/aggregation/expressions"
SOURCES = "server: jstests/aggregation/sources"
TRANSACTIONS = "server: jstests/core/txns"
ONE = [{"_id": 1, "a": 1}]
THREE = [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}, {"_id": 3, "a": 3}]
BAD_VALUE = [2, "BadValue"]
UNPARSED = [9, "FailedToParse"]
UNAUTHORIZED = [13, "Unauthorized"]
MISMATCH = [14, "TypeMismatch"]
NO_NAMESPACE = [26, "NamespaceNotFound"]
NO_INDEX = [27, "IndexNotFound"]
NOT_CREATED = [67, "CannotCreateIndex"]
OPTIONS = [72, "InvalidOptions"]
DUPLICATE = [11000, "DuplicateKey"]
ILLEGAL = [20, "IllegalOperation"]
NO_NAME = [73, "InvalidNamespace"]
ON_VIEW = [166, "CommandNotSupportedOnView"]
CONVERSION = [241, "ConversionFailure"]
NOT_IN_TRANSACTION = [263, "OperationNotSupportedInTransaction"]
NO_OPERATOR = [168, "InvalidPipelineOperator"]
NOT_ALLOWED = [224, "QueryFeatureNotAllowed"]
NO_TRANSACTION = [251, "NoSuchTransaction"]


def refusal(call: Call) -> Call:
    """The code of a refusal, and its name; None if there is none."""

    def run(collection: Any) -> Any:
        try:
            call(collection)
        except OPERATION_FAILURES as error:
            return [error.code, (error.details or {}).get("codeName")]
        return None

    return run


def location(code: int) -> list[Any]:
    """A code without a name of its own."""
    return [code, f"Location{code}"]


def write_code(name: str, **fields: Any) -> Call:
    """The code with which a write, or the whole command, is refused."""

    def run(collection: Any) -> Any:
        try:
            reply = collection.database.command({name: collection.name, **fields})
        except OPERATION_FAILURES as error:
            return error.code
        return reply["writeErrors"][0]["code"] if reply.get("writeErrors") else None

    return run


def batch(name: str, **fields: Any) -> Call:
    """The first batch of a command's cursor."""
    return command(name, of=lambda reply: reply["cursor"]["firstBatch"], **fields)


def piped(*stages: Any, **fields: Any) -> Call:
    """The documents that a pipeline makes; other collections are named by strings."""
    return batch("aggregate", pipeline=list(stages), cursor={}, **fields)


def computed(expression: Any) -> Call:
    """The refusal of an expression."""
    return refusal(piped({"$project": {"r": expression}}))


def make_index(key: Any, **options: Any) -> Call:
    """Creates an index; its name is as drivers make it."""
    name = options.pop("name", "_".join(f"{field}_{kind}" for field, kind in key.items()))
    return command("createIndexes", indexes=[{"key": key, "name": name, **options}])


def indexed(key: Any, call: Call, **options: Any) -> Call:
    return after(make_index(key, **options), call)


def changed(filter: Any, change: Any, **fields: Any) -> Call:
    """The documents after an update by the command."""
    return after(command("update", updates=[{"q": filter, "u": change, **fields}]), stored)


def admin(*, of: Callable[[Any], Any] = lambda reply: reply["ok"], **fields: Any) -> Call:
    """A part of the reply of a command of the database ``admin``."""
    return lambda collection: of(collection.database.client.admin.command(fields))


def database_command(*, of: Callable[[Any], Any] = lambda reply: reply["ok"], **fields: Any) -> Call:
    """A part of the reply of a command that names no collection."""
    return lambda collection: of(collection.database.command(fields))


def make(**options: Any) -> Call:
    """Makes the collection by the command, where there is none."""
    return after(lambda collection: collection.drop(), command("create", **options))


def other_documents(collection: Any) -> Any:
    return stored(collection.database.others)


def by_name(value: Any) -> Any:
    """A document with its fields in the order of their names."""
    return dict(sorted(value.items()))


def integers(value: Any) -> Any:
    """Numbers as plain ones, where their type is not documented."""
    return [int(each) for each in value]


def floats(value: Any) -> Any:
    return [float(each) if each is not None else None for each in value]


def each(field: str, call: Call, made_of: Callable[[Any], Any] = list) -> Call:
    """The values of one field of all documents."""
    return lambda collection: made_of(each.get(field) for each in call(collection))


SPARSE = [{"_id": 1, "x": 1}, {"_id": 2, "x": 1}, {"_id": 3, "x": 1, "s": 0}, {"_id": 4, "x": 1, "s": 0}]


TENS = [{"_id": number, "a": 1} for number in range(10)]


def listed_collections(filter: Any, **options: Any) -> Call:
    """The collections that are listed."""
    return database_command(of=lambda reply: reply["cursor"]["firstBatch"], listCollections=1, filter=filter, **options)


def update_code(filter: Any, change: Any, **fields: Any) -> Call:
    return write_code("update", updates=[{"q": filter, "u": change, **fields}])


def found(**fields: Any) -> Call:
    """The values of _id that the command find returns."""
    return lambda collection: [each["_id"] for each in batch("find", **fields)(collection)]


def not_indexed(key: Any, **options: Any) -> Call:
    return refusal(make_index(key, **options))


def view(*stages: Any) -> Call:
    """Makes ``others`` a view of the collection."""
    return lambda collection: collection.database.command(
        {"create": "others", "viewOn": collection.name, "pipeline": list(stages)}
    )


def of_others(call: Call) -> Call:
    """A call on ``others``."""
    return lambda collection: call(collection.database.others)


def of(call: Call, part: Callable[[Any], Any]) -> Call:
    return lambda collection: part(call(collection))


def ids(values: Any) -> Any:
    return [each["_id"] for each in values]


def inserted(document: Any) -> Call:
    return lambda collection: collection.insert_one(dict(document))


def within(call: Callable[[Any, Any], Any]) -> Call:
    """The answer, or the refusal, of a call in a transaction that is not committed."""

    def run(collection: Any) -> Any:
        with collection.database.client.start_session() as session:
            session.start_transaction()
            try:
                return call(collection, session)
            except OPERATION_FAILURES as error:
                return [error.code, (error.details or {}).get("codeName")]
            finally:
                if session.in_transaction:
                    session.abort_transaction()

    return run


def events(*writes: Call, count: int, pipeline: Any = (), whole: bool = False, **options: Any) -> Call:
    """The first events after some writes; of all the database, or of the collection."""

    def run(collection: Any) -> Any:
        watched = collection.database if whole else collection
        with watched.watch(list(pipeline), max_await_time_ms=50, **options) as stream:
            for write in writes:
                write(collection)
            found: list[Any] = []
            for _ in range(40):
                event = stream.try_next()
                if event is not None:
                    found.append(event)
                if len(found) == count:
                    break
            return found

    return run


def answers(*calls: Call) -> Call:
    """The answers of several calls."""
    return lambda collection: [call(collection) for call in calls]


def plain(value: Any) -> Any:
    """A value with numbers of Python's own types, whole ones as int, others as float of six places."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, Decimal128):
        value = float(value.to_decimal())
    if isinstance(value, float):
        value = round(value, 6)
        return int(value) if value == int(value) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def plainly_piped(*stages: Any) -> Call:
    """The documents that a pipeline makes, with plain numbers."""
    return of(piped(*stages), plain)


def first_error(name: str, **fields: Any) -> Call:
    """The first error of a write."""
    return command(name, of=lambda reply: reply["writeErrors"][0], **fields)


def each_value(expression: Any) -> Call:
    """The values of an expression for all documents by their IDs, with plain numbers; None if there is none."""
    return of(
        piped({"$sort": {"_id": 1}}, {"$project": {"_id": 0, "r": expression}}),
        lambda found: [plain(each.get("r")) for each in found],
    )

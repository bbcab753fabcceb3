"""What official tests take for granted, and a server of another make may lack. When a case has failed that needs it,
the server is asked for it through PyMongo: no fault of gmongo's can pass for one of the server's.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import pymongo
from bson import Binary
from pymongo.errors import PyMongoError

from tests.live.report import Skip
from tests.live.target import Target

_ENCRYPT = {
    "bsonType": "string",
    "algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Random",
    "keyId": [Binary.from_uuid(uuid.UUID(int=7))],
}
_STALE = 251  # NoSuchTransaction


class Probe(NamedTuple):
    """Something that cases need.

    :param words: what the text of such a case has.
    :param ask: asks the server for it, in a database; raises an error if it does not have it.
    """

    words: tuple[str, ...]
    what: str
    ask: Callable[[Any], None]


def _fail(database: Any, name: str, times: int, **data: Any) -> None:
    database.client.admin.command("configureFailPoint", name, mode={"times": times}, data=data)


def _refuses(call: Callable[[], Any]) -> None:
    try:
        call()
    except PyMongoError:
        return
    raise LookupError("it does not fail")


def _javascript(database: Any) -> None:
    database.things.insert_one({})
    list(database.things.find({"$where": "true"}))


def _encrypted_values(database: Any) -> None:
    database.create_collection("k", validator={"$jsonSchema": {"properties": {"a": {"encrypt": _ENCRYPT}}}})


def _encrypted_fields(database: Any) -> None:
    database.create_collection("k", encryptedFields={"fields": []})


def _transactional_writes(database: Any) -> None:
    _fail(database, "onPrimaryTransactionalWrite", 1, failBeforeCommitExceptionCode=1, closeConnection=False)
    _refuses(lambda: database.things.insert_one({}))


def _concern_errors(database: Any) -> None:
    error = {"code": 91, "errmsg": "x", "errorLabels": ["RetryableWriteError"]}
    _fail(database, "failCommand", 2, failCommands=["insert"], writeConcernError=error)
    _refuses(lambda: database.things.insert_one({}))


def _snapshots(database: Any) -> None:
    database.things.insert_one({"_id": 1})
    with database.client.start_session(snapshot=True) as session:
        database.things.find_one({}, session=session)
        database.things.insert_one({"_id": 2})
        if len(list(database.things.find({}, session=session))) != 1:
            raise LookupError("it shows what came later")


def _operation_times(database: Any) -> None:
    if "operationTime" not in database.command("insert", "things", documents=[{}]):
        raise LookupError("its replies have none")


def _next_transactions(database: Any) -> None:
    database.create_collection("things")
    with database.client.start_session() as session:
        session.start_transaction()
        database.things.insert_one({"_id": 1}, session=session)
        _fail(database, "failCommand", 1, failCommands=["commitTransaction"], errorCode=_STALE)
        _refuses(session.commit_transaction)
        session.start_transaction()
        database.things.insert_one({"_id": 1}, session=session)
        session.commit_transaction()


def _bulks_after(database: Any) -> None:
    with database.client.start_session() as session:
        database.things.insert_one({}, session=session)
        model = pymongo.InsertOne({}, namespace=f"{database.name}.things")
        database.client.bulk_write([model], session=session)


PROBES = (
    Probe(("$where",), "JavaScript", _javascript),
    Probe(("'encrypt':",), "`encrypt` in schemas", _encrypted_values),
    Probe(("encryptedFields",), "collections with encryptedFields", _encrypted_fields),
    Probe(("onPrimaryTransactionalWrite",), "this fail point", _transactional_writes),
    Probe(("writeConcernError",), "fail points with a writeConcernError for each try", _concern_errors),
    Probe(("snapshot",), "snapshots", _snapshots),
    Probe(("causal_consistency",), "the operationTime of a write", _operation_times),
    Probe(("ransaction",), "the end of a transaction by the next of its session", _next_transactions),
    Probe(("end_session",), "the end of a transaction by the next of its session", _next_transactions),
    Probe(("clientBulkWrite", "afterClusterTime"), "bulkWrite with a read concern", _bulks_after),
)


class Probes:
    """What a server has said; it is asked once for each thing.

    :param target: the deployment.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._found: dict[Probe, str] = {}

    @contextmanager
    def judged(self, text: str) -> Iterator[None]:
        """Skip a case that fails in the block, if the server lacks what it needs.

        :param text: of the case.
        """
        try:
            yield
        except Skip:
            raise
        except Exception:
            lacking = self.lacking(text)
            if lacking:
                raise Skip(lacking) from None
            raise

    def lacking(self, text: str) -> str:
        """What the server lacks of that which a case needs, in its own words; empty if it lacks nothing.

        :param text: of the case.
        """
        wanted = [probe for probe in PROBES if all(word in text for word in probe.words)]
        return "; ".join(filter(None, map(self._asked, wanted)))

    def _asked(self, probe: Probe) -> str:
        if probe not in self._found:
            self._found[probe] = self._ask(probe)
        return self._found[probe]

    def _ask(self, probe: Probe) -> str:
        options = {"socketTimeoutMS": 5000, "heartbeatFrequencyMS": 500, **self._target.options}
        with pymongo.MongoClient(self._target.uri_of_one(), **options) as client:
            name = self._target.database("probe")
            client.drop_database(name)
            try:
                probe.ask(client[name])
            except (PyMongoError, LookupError) as error:
                return f"the server lacks {probe.what}: {str(error).partition(', full error')[0][:120]}"
            finally:
                self._target.fail_points_off("failCommand", "onPrimaryTransactionalWrite")
                with suppress(PyMongoError):
                    client.drop_database(name)
        return ""

"""Probes detect whether the server has features that official tests need.

Servers other than MongoDB may lack some features.

After a case has failed, a probe uses the features of the case with PyMongo. A fault of gmongo
therefore cannot look like a missing feature of the server.
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
_STALE = 251  # error code NoSuchTransaction


class Probe(NamedTuple):
    """A probe for one feature.

    :param words: A case needs the feature if the text of the case contains each of these words.
    :param feature: Name of the feature, which the reason of a skipped case contains.
    :param check: Function that uses the feature in a database of PyMongo, and raises an error if
        the server lacks the feature.
    """

    words: tuple[str, ...]
    feature: str
    check: Callable[[Any], None]


def _set_fail_point(database: Any, name: str, times: int, **data: Any) -> None:
    database.client.admin.command("configureFailPoint", name, mode={"times": times}, data=data)


def _require_failure(call: Callable[[], Any]) -> None:
    try:
        call()
    except PyMongoError:
        return
    raise LookupError("the command does not fail")


def _javascript(database: Any) -> None:
    database.things.insert_one({})
    list(database.things.find({"$where": "true"}))


def _encrypted_values(database: Any) -> None:
    database.create_collection("k", validator={"$jsonSchema": {"properties": {"a": {"encrypt": _ENCRYPT}}}})


def _encrypted_fields(database: Any) -> None:
    database.create_collection("k", encryptedFields={"fields": []})


def _transactional_writes(database: Any) -> None:
    _set_fail_point(database, "onPrimaryTransactionalWrite", 1, failBeforeCommitExceptionCode=1, closeConnection=False)
    _require_failure(lambda: database.things.insert_one({}))


def _write_concern_errors(database: Any) -> None:
    error = {"code": 91, "errmsg": "x", "errorLabels": ["RetryableWriteError"]}
    _set_fail_point(database, "failCommand", 2, failCommands=["insert"], writeConcernError=error)
    _require_failure(lambda: database.things.insert_one({}))


def _snapshots(database: Any) -> None:
    database.things.insert_one({"_id": 1})
    with database.client.start_session(snapshot=True) as session:
        database.things.find_one({}, session=session)
        database.things.insert_one({"_id": 2})
        if len(list(database.things.find({}, session=session))) != 1:
            raise LookupError("the snapshot contains later writes")


def _operation_times(database: Any) -> None:
    if "operationTime" not in database.command("insert", "things", documents=[{}]):
        raise LookupError("the replies have no operationTime")


def _next_transactions(database: Any) -> None:
    database.create_collection("things")
    with database.client.start_session() as session:
        session.start_transaction()
        database.things.insert_one({"_id": 1}, session=session)
        _set_fail_point(database, "failCommand", 1, failCommands=["commitTransaction"], errorCode=_STALE)
        _require_failure(session.commit_transaction)
        session.start_transaction()
        database.things.insert_one({"_id": 1}, session=session)
        session.commit_transaction()


def _bulk_after_insert(database: Any) -> None:
    with database.client.start_session() as session:
        database.things.insert_one({}, session=session)
        model = pymongo.InsertOne({}, namespace=f"{database.name}.things")
        database.client.bulk_write([model], session=session)


PROBES = (
    Probe(("$where",), "JavaScript", _javascript),
    Probe(("'encrypt':",), "`encrypt` in schemas", _encrypted_values),
    Probe(("encryptedFields",), "collections with encryptedFields", _encrypted_fields),
    Probe(("onPrimaryTransactionalWrite",), "this fail point", _transactional_writes),
    Probe(("writeConcernError",), "fail points with a writeConcernError for each attempt", _write_concern_errors),
    Probe(("snapshot",), "snapshots", _snapshots),
    Probe(("causal_consistency",), "the operationTime of a write", _operation_times),
    Probe(("ransaction",), "the abort of a transaction by the next transaction of its session", _next_transactions),
    Probe(("end_session",), "the abort of a transaction by the next transaction of its session", _next_transactions),
    Probe(("clientBulkWrite", "afterClusterTime"), "bulkWrite with a read concern", _bulk_after_insert),
)


class Probes:
    """The probes of one deployment. Each probe runs at most once, and its result is cached."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._results: dict[Probe, str] = {}

    @contextmanager
    def skip_if_feature_is_missing(self, text: str) -> Iterator[None]:
        """Run a case in the block.

        If the case fails and the server lacks a feature that the case needs, raise Skip.

        :param text: Text of the case, which is searched for the words of each feature.
        """
        try:
            yield
        except Skip:
            raise
        except Exception:
            lacking = self.missing_features(text)
            if lacking:
                raise Skip(lacking) from None
            raise

    def missing_features(self, text: str) -> str:
        """Return a text that names the features that a case needs and the server lacks, with the errors of the server.

        The text is empty if the server has all of these features.

        :param text: Text of the case, which is searched for the words of each feature.
        """
        needed = [probe for probe in PROBES if all(word in text for word in probe.words)]
        return "; ".join(filter(None, map(self._cached_result, needed)))

    def _cached_result(self, probe: Probe) -> str:
        if probe not in self._results:
            self._results[probe] = self._check(probe)
        return self._results[probe]

    def _check(self, probe: Probe) -> str:
        options = {"socketTimeoutMS": 5000, "heartbeatFrequencyMS": 500, **self._target.options}
        with pymongo.MongoClient(self._target.uri_of_one_mongos(), **options) as client:
            name = self._target.database("probe")
            client.drop_database(name)
            try:
                probe.check(client[name])
            except (PyMongoError, LookupError) as error:
                return f"the server lacks {probe.feature}: {str(error).partition(', full error')[0][:120]}"
            finally:
                self._target.disable_fail_points("failCommand", "onPrimaryTransactionalWrite")
                with suppress(PyMongoError):
                    client.drop_database(name)
        return ""

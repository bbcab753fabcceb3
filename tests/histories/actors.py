"""The actors of a history.

An actor repeats one operation in a greenlet, and checks the results.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import gevent
from bson import Timestamp

from gmongo import MongoClient, ReturnDocument
from gmongo.errors import BulkWriteError, DuplicateKeyError, PyMongoError
from gmongo.read_preferences import ReadPreference
from gmongo.testing import Deployment

FIXED_COUNT = 40  # Number of documents that no actor changes.


class Violation(AssertionError):
    """Raised if the driver has violated an invariant of a history."""


def stored_answer(number: int) -> str:
    """Return the value of the field ``answer`` in document `number`."""
    return f"the answer to {number}"


def run_and_return_error(operate: Callable[[str], None], token: str) -> Exception | None:
    """Run an operation. Return the error that the operation raises, or None.

    The function does not raise the error, because gevent prints an error that ends a greenlet.
    """
    try:
        operate(token)
    except Exception as error:
        return error
    return None


class Actor:
    """Base class of actors. An actor repeats one operation.

    :ivar acknowledged: the tokens of the successful operations.
    :ivar attempted: the tokens of all operations, including failed and interrupted operations.
    :ivar outcomes: the number of operations by outcome: ``done``, ``interrupted``, or the name of an
        error class.
    """

    def __init__(self, name: str, client: MongoClient[Any], rng: random.Random) -> None:
        self.name = name
        self.client = client
        self.database = client.history
        self.rng = rng
        self.acknowledged: list[str] = []
        self.attempted: list[str] = []
        self.outcomes: Counter[str] = Counter()

    def run(self, count: int, pause: float) -> None:
        """Run the operation `count` times, with random pauses of `pause` seconds on average."""
        for number in range(count):
            gevent.sleep(self.rng.uniform(0, 2 * pause))
            self._operate_once(f"{self.name}-{number}")

    def _operate_once(self, token: str) -> None:
        """Run the operation once. In 12 % of the cases, a timeout or a kill interrupts the call."""
        fate, delay = self.rng.random(), self.rng.choice((0, 0.001, 0.02, 0.5, 5))
        self.attempted.append(token)
        try:
            if fate < 0.06:
                done = self._operate_until_killed(token, delay)
            elif fate < 0.12:
                done = False
                with gevent.Timeout(delay, False):
                    self.operate(token)
                    done = True
            else:
                self.operate(token)
                done = True
        except PyMongoError as error:
            self.outcomes[type(error).__name__] += 1
            return
        self.outcomes["done" if done else "interrupted"] += 1
        if done:
            self.acknowledged.append(token)

    def _operate_until_killed(self, token: str, delay: float) -> bool:
        worker = gevent.spawn(run_and_return_error, self.operate, token)
        worker.join(delay)
        worker.kill()
        try:
            if isinstance(worker.value, Exception):
                raise worker.value
            return worker.value is None
        finally:
            del worker  # breaks the reference cycle of this frame, the greenlet and the error

    def operate(self, token: str) -> None:
        """Run the operation of the actor. `token` is a unique text that identifies the operation."""
        raise NotImplementedError

    def check(self, client: MongoClient[Any]) -> None:
        """At the end of the history, check the results of all operations of this actor.

        :param client: a new client of the deployment, which no longer has faults.
        :raises Violation: an invariant is violated.
        """

    def _check_tokens(self, stored_tokens: list[str]) -> None:
        """Check that each acknowledged write is stored, and that no write is stored more
        than once.
        """
        counts = Counter(stored_tokens)
        own_counts = {token: count for token, count in counts.items() if token.rpartition("-")[0] == self.name}
        if duplicates := [token for token, count in own_counts.items() if count > 1]:
            raise Violation(f"written more than once: {duplicates}")
        if lost := [token for token in self.acknowledged if token not in own_counts]:
            raise Violation(f"acknowledged, but missing: {lost}")
        if unknown := set(own_counts) - set(self.attempted):
            raise Violation(f"never written: {unknown}")


class Inserter(Actor):
    """Actor whose operation inserts one or two documents."""

    def operate(self, token: str) -> None:
        collection, second_id = self.database.inserts, f"{self.name}+{token.rpartition('-')[2]}"
        try:
            if self.rng.random() < 0.7:
                collection.insert_one({"_id": token})
            else:
                collection.insert_many([{"_id": token}, {"_id": second_id}])
        except (DuplicateKeyError, BulkWriteError) as error:
            if self._supports_retryable_writes and "E11000" in str(error):
                raise Violation(f"{token} was inserted a second time: {error}") from error
            raise

    @property
    def _supports_retryable_writes(self) -> bool:
        """True if the deployment supports retryable writes."""
        return self.client.topology_description.topology_type_name not in ("Single", "Unknown")

    def check(self, client: MongoClient[Any]) -> None:
        self._check_tokens([each["_id"] for each in client.history.inserts.find()])


class Updater(Actor):
    """Actor that pushes each token to a list in one of three documents. No token may occur twice."""

    def operate(self, token: str) -> None:
        collection = self.database.lists
        target, change = (
            {"_id": self.rng.randrange(3)},
            {"$push": {"tokens": token}, "$inc": {"count": 1}},
        )
        if self.rng.random() < 0.5:
            collection.update_one(target, change)
            return
        document = collection.find_one_and_update(target, change, return_document=ReturnDocument.AFTER)
        if token not in document["tokens"] or document["_id"] != target["_id"]:
            raise Violation(f"{token}: the reply does not belong to this operation: {document}")

    def check(self, client: MongoClient[Any]) -> None:
        documents = list(client.history.lists.find())
        self._check_tokens([token for each in documents for token in each["tokens"]])
        if any(each["count"] != len(each["tokens"]) for each in documents):
            raise Violation(f"the length of a list differs from its count: {documents}")


class Reader(Actor):
    """Actor that reads the documents that no actor changes, and checks the results."""

    def operate(self, token: str) -> None:
        number = self.rng.randrange(FIXED_COUNT)
        method = self.rng.randrange(4)
        questions = self.database.get_collection("questions", read_preference=self._choose_preference())
        if method == 0:
            self._compare([number], [questions.find_one({"_id": number}, comment=token)])
        elif method == 1:
            expected = list(range(number, FIXED_COUNT))
            self._compare(expected, list(questions.find({"_id": {"$gte": number}}, batch_size=5).sort("_id")))
        elif method == 2:
            self._compare([number], list(questions.aggregate([{"$match": {"_id": number}}])))
        elif questions.count_documents({"_id": {"$lt": number}}) != number:
            raise Violation(f"{token}: the count is wrong")

    def _choose_preference(self) -> Any:
        return self.rng.choice((ReadPreference.PRIMARY, ReadPreference.SECONDARY_PREFERRED, ReadPreference.NEAREST))

    def _compare(self, expected: list[int], documents: list[Any]) -> None:
        if [(each or {}).get("answer") for each in documents] != [stored_answer(number) for number in expected]:
            raise Violation(f"expected {expected}, but read {documents}")


class TransferActor(Actor):
    """Actor that moves amounts between accounts in transactions.

    Each transaction must make all of its changes or none.
    """

    def operate(self, token: str) -> None:
        giver, taker = self.rng.sample(range(4), 2)
        amount = self.rng.randrange(1, 10)

        def move(session: Any) -> None:
            accounts = self.database.accounts
            accounts.update_one(
                {"_id": giver},
                {"$inc": {"amount": -amount}, "$push": {"given": token}},
                session=session,
            )
            accounts.update_one(
                {"_id": taker},
                {"$inc": {"amount": amount}, "$push": {"taken": token}},
                session=session,
            )

        with self.client.start_session() as session:
            session.with_transaction(move)

    def check(self, client: MongoClient[Any]) -> None:
        accounts = list(client.history.accounts.find())
        given, taken = ([token for each in accounts for token in each[name]] for name in ("given", "taken"))
        self._check_tokens(given)
        if sorted(given) != sorted(taken):
            raise Violation(f"only half of a transaction was applied: given {given}, taken {taken}")
        if sum(each["amount"] for each in accounts):
            raise Violation(f"amounts were lost: {accounts}")


class CausalReader(Actor):
    """Actor that writes and reads in a causally consistent session.

    Each read must reflect the session's earlier writes, and must not be older than an earlier read.
    """

    def __init__(self, name: str, client: MongoClient[Any], rng: random.Random, deployment: Deployment) -> None:
        super().__init__(name, client, rng)
        self._deployment = deployment
        self._session = client.start_session(causal_consistency=True)
        self._last_written = self._last_seen = 0

    def operate(self, token: str) -> None:
        session, collection = self._session, self.database.followed
        if self.rng.random() < 0.4:
            number = int(token.rpartition("-")[2])
            collection.update_one({"_id": self.name}, {"$max": {"n": number}}, session=session, upsert=True)
            self._last_written = max(self._last_written, number)
            return
        preference = self.rng.choice((ReadPreference.PRIMARY, ReadPreference.SECONDARY_PREFERRED))
        time_before = session.operation_time
        document = collection.with_options(read_preference=preference).find_one(
            {"_id": self.name}, session=session, comment=token
        )
        seen_number = (document or {"n": 0})["n"]
        if seen_number < max(self._last_written, self._last_seen):
            raise Violation(f"{token}: read {seen_number} after write {self._last_written} and read {self._last_seen}")
        self._last_seen = seen_number
        self._check_sent_read_concern(token, time_before, session.operation_time)

    def _check_sent_read_concern(self, token: str, time_before: Timestamp | None, time_after: Timestamp | None) -> None:
        """Check that the read concern of the sent command contains the operation time of the session.

        The results of reads cannot prove causal consistency, because all simulated members have the
        same data.
        """
        if time_before is None:
            return
        if time_after is None or time_after < time_before:
            raise Violation(f"{token}: the operation time of the session decreased")
        commands = [each.body for each in self._deployment.commands.named("find") if each.body.get("comment") == token]
        sent_times = [body.get("readConcern", {}).get("afterClusterTime") for body in commands]
        # The reply to a failed attempt also advances the operation time. The next attempt sends the
        # advanced time.
        if not commands or sent_times[0] != time_before or sent_times != sorted(sent_times):
            raise Violation(f"{token}: expected afterClusterTime {time_before}, but sent {sent_times}")


class Watcher(Actor):
    """Actor that watches the inserts of the other actors with a change stream.

    Even after errors, the stream must return each insert once and in order.
    """

    def __init__(self, name: str, client: MongoClient[Any], rng: random.Random) -> None:
        super().__init__(name, client, rng)
        self.seen_ids: list[Any] = []
        self.may_end = False
        self._stream = self.database.inserts.watch(max_await_time_ms=2000)
        self._resume_token = self._stream.resume_token

    def run(self, count: int, pause: float) -> None:
        while not (self.may_end and self.seen_ids and self.seen_ids[-1] == "last"):
            try:
                self._read_event()
            except PyMongoError as error:
                self.outcomes[type(error).__name__] += 1
                gevent.sleep(0.5)
                self._resume()
        self._stream.close()

    def _read_event(self) -> None:
        event = self._stream.try_next()
        if self._stream.resume_token is not None:
            self._resume_token = self._stream.resume_token
        if event is not None:
            self.outcomes["done"] += 1
            self.seen_ids.append(event["documentKey"]["_id"])
        elif not self._stream.alive:
            self._resume()

    def _resume(self) -> None:
        while True:
            try:
                self._stream.close()
                self._stream = self.database.inserts.watch(resume_after=self._resume_token, max_await_time_ms=2000)
                return
            except PyMongoError:
                gevent.sleep(0.5)

    def check(self, client: MongoClient[Any]) -> None:
        inserted = [each["_id"] for each in client.history.inserts.find()]
        if self.seen_ids != inserted:
            raise Violation(f"the stream has {self.seen_ids}, the collection has {inserted}")

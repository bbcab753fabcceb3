"""The actors of a history. Each has a checker of its own for what may have come of its work."""

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

DOCUMENTS = 40  # that are there from the beginning, and never change


class Violation(AssertionError):
    """What must not happen."""


def answer_to(number: int) -> str:
    """What the document with that number says."""
    return f"the answer to {number}"


def outcome_of(act: Callable[[str], None], token: str) -> Exception | None:
    """The error of an act; in a greenlet that fails gevent would print it."""
    try:
        act(token)
    except Exception as error:
        return error
    return None


class Actor:
    """An actor that does one thing again and again.

    :ivar certain: the tokens of writes that were acknowledged.
    :ivar tried: the tokens of all writes.
    :ivar outcomes: how many of its operations came to which end.
    """

    def __init__(self, name: str, client: MongoClient[Any], chance: random.Random) -> None:
        self.name = name
        self.client = client
        self.database = client.history
        self.chance = chance
        self.certain: list[str] = []
        self.tried: list[str] = []
        self.outcomes: Counter[str] = Counter()

    def run(self, count: int, pause: float) -> None:
        """Do it so often."""
        for number in range(count):
            gevent.sleep(self.chance.uniform(0, 2 * pause))
            self._try(f"{self.name}-{number}")

    def _try(self, token: str) -> None:
        """Do it once; now and then it gives up waiting, or a test kills the greenlet."""
        fate, patience = self.chance.random(), self.chance.choice((0, 0.001, 0.02, 0.5, 5))
        self.tried.append(token)
        try:
            if fate < 0.06:
                done = self._act_until_killed(token, patience)
            elif fate < 0.12:
                done = False
                with gevent.Timeout(patience, False):
                    self.act(token)
                    done = True
            else:
                self.act(token)
                done = True
        except PyMongoError as error:
            self.outcomes[type(error).__name__] += 1
            return
        self.outcomes["done" if done else "interrupted"] += 1
        if done:
            self.certain.append(token)

    def _act_until_killed(self, token: str, patience: float) -> bool:
        work = gevent.spawn(outcome_of, self.act, token)
        work.join(patience)
        work.kill()
        try:
            if isinstance(work.value, Exception):
                raise work.value
            return work.value is None
        finally:
            del work  # an error that refers to this frame would keep its cursor until the collector runs

    def act(self, token: str) -> None:
        """The one thing."""
        raise NotImplementedError

    def check(self, client: MongoClient[Any]) -> None:
        """Look at what came of it.

        :param client: a new one, when everything works again.
        :raises Violation: it cannot be.
        """

    def _check_tokens(self, found: list[str]) -> None:
        """All acknowledged writes are there, and each write at most once."""
        counts = Counter(found)
        mine = {token: count for token, count in counts.items() if token.rpartition("-")[0] == self.name}
        if twice := [token for token, count in mine.items() if count > 1]:
            raise Violation(f"written more than once: {twice}")
        if lost := [token for token in self.certain if token not in mine]:
            raise Violation(f"acknowledged, but not there: {lost}")
        if foreign := set(mine) - set(self.tried):
            raise Violation(f"never written: {foreign}")


class Inserter(Actor):
    """Inserts documents, one or several at a time."""

    def act(self, token: str) -> None:
        collection, more = self.database.inserts, f"{self.name}+{token.rpartition('-')[2]}"
        try:
            if self.chance.random() < 0.7:
                collection.insert_one({"_id": token})
            else:
                collection.insert_many([{"_id": token}, {"_id": more}])
        except (DuplicateKeyError, BulkWriteError) as error:
            if self._is_retried and "E11000" in str(error):
                raise Violation(f"{token} was inserted a second time: {error}") from error
            raise

    @property
    def _is_retried(self) -> bool:
        """Whether the servers know a retried write again."""
        return self.client.topology_description.topology_type_name not in ("Single", "Unknown")

    def check(self, client: MongoClient[Any]) -> None:
        self._check_tokens([each["_id"] for each in client.history.inserts.find()])


class Updater(Actor):
    """Pushes its tokens on one of a few documents, in several ways; each has to arrive once."""

    def act(self, token: str) -> None:
        collection = self.database.lists
        target, change = {"_id": self.chance.randrange(3)}, {"$push": {"tokens": token}, "$inc": {"count": 1}}
        if self.chance.random() < 0.5:
            collection.update_one(target, change)
            return
        document = collection.find_one_and_update(target, change, return_document=ReturnDocument.AFTER)
        if token not in document["tokens"] or document["_id"] != target["_id"]:
            raise Violation(f"{token}: another's answer: {document}")

    def check(self, client: MongoClient[Any]) -> None:
        found = list(client.history.lists.find())
        self._check_tokens([token for each in found for token in each["tokens"]])
        if any(each["count"] != len(each["tokens"]) for each in found):
            raise Violation(f"a list has not as many tokens as it counts: {found}")


class Reader(Actor):
    """Reads what never changes, and gets the answers to its own questions."""

    def act(self, token: str) -> None:
        number = self.chance.randrange(DOCUMENTS)
        way = self.chance.randrange(4)
        questions = self.database.get_collection("questions", read_preference=self._preference())
        if way == 0:
            self._compare([number], [questions.find_one({"_id": number}, comment=token)])
        elif way == 1:
            wanted = list(range(number, DOCUMENTS))
            self._compare(wanted, list(questions.find({"_id": {"$gte": number}}, batch_size=5).sort("_id")))
        elif way == 2:
            self._compare([number], list(questions.aggregate([{"$match": {"_id": number}}])))
        elif questions.count_documents({"_id": {"$lt": number}}) != number:
            raise Violation(f"{token}: a count is not that of its question")

    def _preference(self) -> Any:
        return self.chance.choice((ReadPreference.PRIMARY, ReadPreference.SECONDARY_PREFERRED, ReadPreference.NEAREST))

    def _compare(self, wanted: list[int], found: list[Any]) -> None:
        if [(each or {}).get("answer") for each in found] != [answer_to(number) for number in wanted]:
            raise Violation(f"asked for {wanted}, and got {found}")


class Mover(Actor):
    """Moves amounts between accounts in transactions: all of one happens, or nothing."""

    def act(self, token: str) -> None:
        giver, taker = self.chance.sample(range(4), 2)
        amount = self.chance.randrange(1, 10)

        def move(session: Any) -> None:
            accounts = self.database.accounts
            accounts.update_one(
                {"_id": giver}, {"$inc": {"amount": -amount}, "$push": {"given": token}}, session=session
            )
            accounts.update_one(
                {"_id": taker}, {"$inc": {"amount": amount}, "$push": {"taken": token}}, session=session
            )

        with self.client.start_session() as session:
            session.with_transaction(move)

    def check(self, client: MongoClient[Any]) -> None:
        accounts = list(client.history.accounts.find())
        given, taken = ([token for each in accounts for token in each[name]] for name in ("given", "taken"))
        self._check_tokens(given)
        if sorted(given) != sorted(taken):
            raise Violation(f"half of a transaction: given {given}, taken {taken}")
        if sum(each["amount"] for each in accounts):
            raise Violation(f"amounts were lost: {accounts}")


class Follower(Actor):
    """Writes and reads in a causally consistent session: what it wrote it reads, and nothing it has seen goes back."""

    def __init__(self, name: str, client: MongoClient[Any], chance: random.Random, deployment: Deployment) -> None:
        super().__init__(name, client, chance)
        self._deployment = deployment
        self._session = client.start_session(causal_consistency=True)
        self._written = self._seen = 0

    def act(self, token: str) -> None:
        session, collection = self._session, self.database.followed
        if self.chance.random() < 0.4:
            number = int(token.rpartition("-")[2])
            collection.update_one({"_id": self.name}, {"$max": {"n": number}}, session=session, upsert=True)
            self._written = max(self._written, number)
            return
        preference = self.chance.choice((ReadPreference.PRIMARY, ReadPreference.SECONDARY_PREFERRED))
        before = session.operation_time
        found = collection.with_options(read_preference=preference).find_one(
            {"_id": self.name}, session=session, comment=token
        )
        seen = (found or {"n": 0})["n"]
        if seen < max(self._written, self._seen):
            raise Violation(f"{token}: it read {seen} after it wrote {self._written} and read {self._seen}")
        self._seen = seen
        self._check_sent(token, before, session.operation_time)

    def _check_sent(self, token: str, before: Timestamp | None, after: Timestamp | None) -> None:
        """The members were told what the read has to follow; the simulated ones would know it anyway."""
        if before is None:
            return
        if after is None or after < before:
            raise Violation(f"{token}: the operation time of the session went back")
        sent = [each.body for each in self._deployment.commands.named("find") if each.body.get("comment") == token]
        followed = [body.get("readConcern", {}).get("afterClusterTime") for body in sent]
        # The answer to a try that failed has a time too, which the next try follows.
        if not sent or followed[0] != before or followed != sorted(followed):
            raise Violation(f"{token}: it has to follow {before}, and was sent with {followed}")


class Watcher(Actor):
    """Watches the inserts: sees each once, in order, whatever happens to its stream."""

    def __init__(self, name: str, client: MongoClient[Any], chance: random.Random) -> None:
        super().__init__(name, client, chance)
        self.seen: list[Any] = []
        self.ends = False
        self._stream = self.database.inserts.watch(max_await_time_ms=2000)
        self._token = self._stream.resume_token

    def run(self, count: int, pause: float) -> None:
        while not (self.ends and self.seen and self.seen[-1] == "last"):
            try:
                self._look()
            except PyMongoError as error:
                self.outcomes[type(error).__name__] += 1
                gevent.sleep(0.5)
                self._begin_again()
        self._stream.close()

    def _look(self) -> None:
        event = self._stream.try_next()
        if self._stream.resume_token is not None:
            self._token = self._stream.resume_token
        if event is not None:
            self.outcomes["done"] += 1
            self.seen.append(event["documentKey"]["_id"])
        elif not self._stream.alive:
            self._begin_again()

    def _begin_again(self) -> None:
        while True:
            try:
                self._stream.close()
                self._stream = self.database.inserts.watch(resume_after=self._token, max_await_time_ms=2000)
                return
            except PyMongoError:
                gevent.sleep(0.5)

    def check(self, client: MongoClient[Any]) -> None:
        there = [each["_id"] for each in client.history.inserts.find()]
        if self.seen != there:
            raise Violation(f"the stream told of {self.seen}, and there are {there}")

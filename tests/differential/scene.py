"""Plays a call through one driver on one server, and notes all that came of it."""

from __future__ import annotations

import ast
import datetime
import decimal
import re
import socket
import struct
import textwrap
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import bson
import gevent
import gridfs
import pymongo
import pymongo.errors
from bson.codec_options import CodecOptions, TypeCodec, TypeRegistry
from bson.raw_bson import RawBSONDocument
from bson.son import SON

import gmongo
import gmongo.errors
import gmongo.gridfs

from .patience import SILENT, interrupted
from .portrait import Portrait
from .tap import SERVERS_OWN, Sent, Tap

DATABASE = "differential"
DOCUMENTS = [{"_id": number, "kind": number % 3, "name": f"n{number}", "tags": [number, "t"]} for number in range(10)]

# After which the documents are as they were.
_READS = frozenset({"count", "distinct", "explain", "find", "getMore", "listCollections", "listDatabases"})
_PATIENCE: float | None = None  # seconds that a call is given; None is as long as the test: megabytes take their time
_BARRIER = "after the call"

# Fields that say what the server does without them too; one driver sends them, the other saves the bytes.
_SAYS_NOTHING = (("multi", False), ("upsert", False), ("new", False), ("comment", None), ("$readPreference", None))


class Decimals(TypeCodec):  # type: ignore[misc]
    """Stores Python's decimals as strings of its own kind."""

    python_type = decimal.Decimal
    bson_type = bson.Decimal128

    def transform_python(self, value: Any) -> Any:
        return bson.Decimal128(value)

    def transform_bson(self, value: Any) -> Any:
        return value.to_decimal()


class ForeignDatabaseError(Exception):
    """A call would touch a database that the server had before the tests."""


class Driver(NamedTuple):
    """One of the two drivers."""

    name: str
    module: ModuleType
    gridfs: ModuleType


PYMONGO = Driver("PyMongo", pymongo, gridfs)
GMONGO = Driver("gmongo", gmongo, gmongo.gridfs)


class Outcome(NamedTuple):
    """What a call did."""

    returned: Any
    error: Any
    commands: list[Any]
    left: Any
    text: str
    """Of the error, for people; it is not compared."""


class Call(NamedTuple):
    """A row of the table: a few lines of Python, of which the last is an expression.

    :param name: the subject, and the number of the line.
    :param source: the lines.
    :param since: the first version of PyMongo that answers as gmongo does; empty for all.
    """

    name: str
    source: str
    since: str


def calls(path: Path) -> Iterator[Call]:
    """The rows of a file: blocks of lines, parted by empty lines. A line that begins with ``#`` is a comment, and can
    say since when PyMongo answers so.
    """
    number = 1
    for block in re.split(r"\n[ \t]*\n", path.read_text()):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        source = "\n".join(lines).strip("\n")
        if source:
            since = re.search(r"^# since PyMongo (\S+)$", block, re.MULTILINE)
            yield Call(f"{path.stem}:{number}", source, since[1] if since else "")
        number += block.count("\n") + 2


class Scene:
    """A server with a tap, and a client of each driver.

    :param server: host and port.
    :param name: what the server is called.
    :param patience: seconds that a call is given, on a server that may never answer.
    :param database: the one that calls work in.
    :param alone: let calls reach no other, and send nothing that concerns the server as a whole.
    :param login: user and password with their ``@``, as in a connection string.
    :param options: of the connection string.
    """

    def __init__(
        self,
        server: tuple[str, int],
        name: str,
        patience: float | None = None,
        database: str = DATABASE,
        alone: bool = False,
        login: str = "",
        options: str = "directConnection=true",
    ) -> None:
        self._given_patience = patience
        self.name, self._database, self._alone = name, database, alone
        limit = None if patience is None else int(1000 * patience)  # a server that loses a request must not end it all
        self._control: Any = pymongo.MongoClient(
            "mongodb://{}{}:{}/?{}".format(login, *server, options), socketTimeoutMS=limit, retryReads=limit is None
        )
        foreign = frozenset(self._control.list_database_names()) - SERVERS_OWN
        if database in foreign:
            raise ForeignDatabaseError(
                f"the server has a database {database!r} already, which the tests would drop: rename or drop it"
            )
        self._tap = Tap(server, foreign, _fault_of_unacknowledged(server, patience), database if alone else None)
        heartbeat = "" if "loadBalanced" in options else "&heartbeatFrequencyMS=500"
        self.uri = f"mongodb://{login}127.0.0.1:{self._tap.port}/?{options}{heartbeat}"
        if limit is not None:
            self.uri += f"&socketTimeoutMS={limit}"
        self._clients: dict[Driver, Any] = {}
        self._whose = "is not of the run" if alone else "the server had before the tests"
        self._failing = False
        self._is_changed = True  # since the documents were put there
        self._unchanged: Any = None  # what is there if no call has changed it, once that has been looked at

    def close(self) -> None:
        """Drop what the calls have made, and close all clients."""
        self._drop_all()
        for client in (*self._clients.values(), self._control):
            client.close()
        self._tap.close()

    def compare(self, source: str | Callable[[dict[str, Any]], Any]) -> tuple[Outcome, Outcome]:
        """Play a call through PyMongo, and then through gmongo."""
        return self.play(PYMONGO, source), self.play(GMONGO, source)

    @property
    def _patience(self) -> float | None:
        return self._given_patience or _PATIENCE

    @property
    def unknown(self) -> frozenset[str]:
        """Why the server could not do what the last call asked for, in its own words; empty if it could."""
        return frozenset(self._tap.unknown)

    def forget(self) -> None:
        """Forget why the server could not do what was asked for."""
        self._tap.unknown.clear()

    def play_gmongo(self, source: str | Callable[[dict[str, Any]], Any]) -> Outcome:
        """Play a call through gmongo alone."""
        return self.play(GMONGO, source)

    def play(self, driver: Driver, source: str | Callable[[dict[str, Any]], Any]) -> Outcome:
        """Play a call through one driver.

        :param source: lines of Python, or a function of the names that such lines know.
        """
        if driver not in self._clients:
            self._clients[driver] = driver.module.MongoClient(self.uri)  # type: ignore[attr-defined]
            self._clients[driver].admin.command("ping")
        portrait, returned, error, text = Portrait(), None, None, ""
        if self._is_changed:
            self._reset()
        self._tap.refused.clear()
        with self._interrupted(driver), self._names(driver) as names:
            self._tap.take()
            try:
                with gevent.Timeout(self._patience):
                    value = source(names) if callable(source) else _run(source, names)
                    returned = portrait.of(value)
            except (Exception, gevent.Timeout) as raised:
                error, text = portrait.of_error(raised), str(raised)
            sent = self._sent(names)
            if self._tap.refused:
                self._is_changed = True  # as far as it came
                named = ", ".join(sorted(self._tap.refused))
                raise ForeignDatabaseError(f"the call uses {named}, which {self._whose}")
        commands = [_without_what_says_nothing(each, portrait) for each in sent]
        if self._failing:
            self._control.admin.command("configureFailPoint", "failCommand", mode="off")
            self._failing = False
        self._is_changed = not all(name[0] in _READS for name, *_ in commands)
        try:
            left = self._left(portrait)
        except pymongo.errors.NetworkTimeout as silent:
            self._tap.unknown.add(f"it does not show what it has: {str(silent)[:40]}")
            left = None
        return Outcome(returned, error, commands, left, text)

    def _interrupted(self, driver: Driver) -> AbstractContextManager[None]:
        if driver is GMONGO:  # a ``gevent.Timeout`` reaches it
            return nullcontext()
        return interrupted(self._patience, lambda: self._tap.unknown.add(SILENT))

    @contextmanager
    def _names(self, driver: Driver) -> Iterator[dict[str, Any]]:
        """What the lines of a call know."""
        clients: list[Any] = [self._clients[driver]]
        module: Any = driver.module

        def client_with(*args: Any, **options: Any) -> Any:
            """A client with options, through the tap unless it is given a host."""
            client = module.MongoClient(*(args or (self.uri,)), **options)
            clients.append(client)
            return client

        own = self._clients[driver]
        names = {name: getattr(module, name) for name in module.__all__}
        names.update(
            {
                "m": module,
                "errors": module.errors,
                "gridfs": driver.gridfs,
                "GridFS": driver.gridfs.GridFS,  # type: ignore[attr-defined]
                "GridFSBucket": driver.gridfs.GridFSBucket,  # type: ignore[attr-defined]
                "client": own,
                "clients": clients,
                "db": own[self._database],
                "c": own[self._database].things,
                "uri": self.uri,
                "Client": client_with,
                "fail": self._fail,
                "bson": bson,
                "ObjectId": bson.ObjectId,
                "Int64": bson.Int64,
                "Binary": bson.Binary,
                "Code": bson.Code,
                "DBRef": bson.DBRef,
                "Decimal128": bson.Decimal128,
                "Regex": bson.Regex,
                "Timestamp": bson.Timestamp,
                "SON": SON,
                "RawBSONDocument": RawBSONDocument,
                "CodecOptions": CodecOptions,
                "DECIMALS": TypeRegistry([Decimals()]),
                "Decimal": decimal.Decimal,
                "uuid": uuid,
                "U": uuid.UUID(int=7),
                "datetime": datetime,
                "raised_by": _raised_by,
            }
        )
        try:
            yield names
        finally:
            for client in clients[1:]:
                client.close()

    def _fail(self, command: str | list[str], times: Any = 1, **data: Any) -> None:
        """Have commands fail, as the fail point ``failCommand`` does."""
        if self._alone:
            raise ForeignDatabaseError("the call sets a fail point, which concerns the server as a whole")
        commands = [command] if isinstance(command, str) else command
        mode = {"times": times} if isinstance(times, int) else times
        try:
            self._control.admin.command(
                "configureFailPoint", "failCommand", mode=mode, data={"failCommands": commands, **data}
            )
        except pymongo.errors.OperationFailure as error:
            self._tap.unknown.add(f"fail points ({error.code}): {str(error)[:80]}")
            raise
        self._failing = True  # the server knows fail points

    def _sent(self, names: dict[str, Any]) -> list[Sent]:
        """The commands of a call, of which the unacknowledged ones may still be on their way."""
        for client in names["clients"]:
            _raised_by(lambda client=client: client.admin.command("ping", comment=_BARRIER))
        return [sent for sent in self._tap.take() if sent.body.get("comment") != _BARRIER]

    def _drop_all(self) -> None:
        """Drop the databases that the calls have made, and no other."""
        for name in sorted(self._tap.used & set(self._control.list_database_names())):
            self._control.drop_database(name)

    def _reset(self) -> None:
        self._drop_all()
        self._tap.used.add(self._database)
        self._control[self._database].things.insert_many([dict(document) for document in DOCUMENTS])

    def _left(self, portrait: Portrait) -> Any:
        """All documents of all collections, by database and collection."""
        if self.name == "nx-27017":
            return None  # it lists what it has dropped, now and then
        if self._is_changed:
            return self._all_documents(portrait)
        if self._unchanged is None:
            self._unchanged = self._all_documents(portrait)
        return self._unchanged

    def _all_documents(self, portrait: Portrait) -> Any:
        left = []
        for name in sorted(self._tap.used & set(self._control.list_database_names())):
            for description in sorted(self._control[name].list_collections(), key=lambda each: each["name"]):
                collection = self._control[name][description["name"]]
                documents = sorted((portrait.of(each) for each in collection.find()), key=repr)
                left.append((name, description["name"], repr(description.get("options")), documents))
        return left


def _fault_of_unacknowledged(server: tuple[str, int], patience: float | None = None) -> str:
    """What a server does wrong with a command that asks for no answer, as drivers wait for ever for what comes after
    it; empty if it does what it should.
    """
    with socket.create_connection(server, timeout=patience) as connection:
        try:
            for number, flags in ((1, 2), (2, 0)):
                body = struct.pack("<IB", flags, 0) + bson.encode({"ping": 1, "$db": "admin"})
                connection.sendall(struct.pack("<iiii", 16 + len(body), number, 0, 2013) + body)
            answered = connection.recv(16, socket.MSG_WAITALL)[8:12]
        except ConnectionError:  # it closes it before it has read all of that
            answered = b""
    if not answered:
        return "it closes the connection on which a command asks for no answer"
    return "" if answered == struct.pack("<i", 2) else "it answers a command that asks for no answer"


def _run(source: str, names: dict[str, Any]) -> Any:
    """Run lines of which the last is an expression, and return its value."""
    tree = ast.parse(textwrap.dedent(source))
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, source, "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), source, "exec"), names)
    return eval(compile(ast.Expression(last.value), source, "eval"), names)


def _raised_by(call: Callable[[], Any]) -> Any:
    """The error that a call raises, or what it returns, so that a row may go on."""
    try:
        return call()
    except Exception as error:
        return error


def _without_what_says_nothing(sent: Sent, portrait: Portrait) -> Any:
    """A command; its top-level fields in any order but for the first."""
    body = _stripped({name: value for name, value in sent.body.items() if name != "txnNumber"})
    if "txnNumber" in sent.body:
        body["txnNumber"] = True
    first, *others = portrait.of(body)[1]
    return first, tuple(sorted(others)), "lsid" in sent.body, sent.acknowledged


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stripped(item) for name, item in value.items() if (name, item) not in _SAYS_NOTHING}
    return [_stripped(item) for item in value] if isinstance(value, list) else value

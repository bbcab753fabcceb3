"""Run a call with one driver on one server, and record the outcome of the call."""

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

from .call_timeouts import NO_REPLY_REASON, interrupt_after
from .comparable_values import ComparableValues
from .recording_proxy import SYSTEM_DATABASES, RecordedCommand, RecordingProxy

DATABASE = "differential"
DOCUMENTS = [{"_id": number, "kind": number % 3, "name": f"n{number}", "tags": [number, "t"]} for number in range(10)]

# Names of commands that do not change documents.
_READ_COMMANDS = frozenset({"count", "distinct", "explain", "find", "getMore", "listCollections", "listDatabases"})
_BARRIER_COMMENT = "after the call"
_BSON_TYPES = ("ObjectId", "Int64", "Binary", "Code", "DBRef", "Decimal128", "Regex", "Timestamp")

# Command fields that only one driver sends, and whose values are defaults of the server. The
# comparison ignores these fields.
_DEFAULT_FIELDS = (("multi", False), ("upsert", False), ("new", False), ("comment", None), ("$readPreference", None))


class DecimalCodec(TypeCodec):  # type: ignore[misc]
    python_type = decimal.Decimal
    bson_type = bson.Decimal128

    def transform_python(self, value: Any) -> Any:
        return bson.Decimal128(value)

    def transform_bson(self, value: Any) -> Any:
        return value.to_decimal()


class ForeignDatabaseError(Exception):
    """Raised if a call would use a forbidden database, or would affect the whole server."""


class Driver(NamedTuple):
    """A driver, with its main module and its module ``gridfs``."""

    name: str
    module: ModuleType
    gridfs: ModuleType


PYMONGO = Driver("PyMongo", pymongo, gridfs)
GMONGO = Driver("gmongo", gmongo, gmongo.gridfs)


class Outcome(NamedTuple):
    """Outcome of a call with one driver, in a form that can be compared.

    :ivar returned: The returned value.
    :ivar error: The raised error, or None.
    :ivar commands: The commands that the call has sent.
    :ivar documents: The documents after the call, in all databases that calls have used.
    """

    returned: Any
    error: Any
    commands: list[Any]
    documents: Any
    text: str
    """Text of the error. The comparison ignores this text."""


class Call(NamedTuple):
    """A row of the table of calls: lines of Python code.

    The last line is an expression, whose value is the result of the call.

    :param name: Name of the file, and number of the row's first line.
    :param source: The lines of Python code.
    :param since: The first version of PyMongo whose outcome equals gmongo's outcome, or empty.
    """

    name: str
    source: str
    since: str


def read_calls(path: Path) -> Iterator[Call]:
    """Yield the calls in a file. Empty lines separate the calls.

    The comment ``# since PyMongo`` names the first version of PyMongo whose outcome equals gmongo's
    outcome.
    """
    number = 1
    for block in re.split(r"\n[ \t]*\n", path.read_text()):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        source = "\n".join(lines).strip("\n")
        if source:
            since = re.search(r"^# since PyMongo (\S+)$", block, re.MULTILINE)
            yield Call(f"{path.stem}:{number}", source, since[1] if since else "")
        number += block.count("\n") + 2


class CallRunner:
    """Runner of calls on one server. The clients of gmongo and PyMongo connect through a recording
    proxy.

    :param server: Host and port of the server.
    :param name: Name of the server, such as ``"simulation"``.
    :param call_timeout: Time limit of a call in seconds, for a server that may not reply.
    :param database: Name of the database that the calls use.
    :param rejects_other_databases: True to reject commands for other databases, and commands that
        affect the whole server.
    :param login: User and password for the URI, followed by ``@``. Empty for a server without users.
    :param options: Options for the URI.
    """

    def __init__(
        self,
        server: tuple[str, int],
        name: str,
        call_timeout: float | None = None,
        database: str = DATABASE,
        rejects_other_databases: bool = False,
        login: str = "",
        options: str = "directConnection=true",
    ) -> None:
        self._call_timeout = call_timeout
        self.name, self._database, self._rejects_other_databases = name, database, rejects_other_databases
        # With the timeout, the tests do not wait forever for the reply of a faulty server.
        limit = None if call_timeout is None else int(1000 * call_timeout)
        self._control_client: Any = pymongo.MongoClient(
            "mongodb://{}{}:{}/?{}".format(login, *server, options), socketTimeoutMS=limit, retryReads=limit is None
        )
        foreign_databases = frozenset(self._control_client.list_database_names()) - SYSTEM_DATABASES
        if database in foreign_databases:
            raise ForeignDatabaseError(
                f"the server already has the database {database!r}, which the tests would drop. "
                "Rename or drop this database before the tests"
            )
        self._proxy = RecordingProxy(
            server,
            foreign_databases,
            _fault_of_unacknowledged(server, call_timeout),
            database if rejects_other_databases else None,
        )
        heartbeat = "" if "loadBalanced" in options else "&heartbeatFrequencyMS=500"
        self.uri = f"mongodb://{login}127.0.0.1:{self._proxy.port}/?{options}{heartbeat}"
        if limit is not None:
            self.uri += f"&socketTimeoutMS={limit}"
        self._clients: dict[Driver, Any] = {}
        self._foreign_reason = "does not belong to the run" if rejects_other_databases else "existed before the tests"
        self._fail_point_is_set = False
        # True if a call may have changed the documents after the last reset.
        self._documents_are_changed = True
        self._unchanged_documents: Any = None  # cache of the documents that exist directly after a reset

    def close(self) -> None:
        """Drop all databases that calls have used, and close all clients and the proxy."""
        self._drop_all()
        for client in (*self._clients.values(), self._control_client):
            client.close()
        self._proxy.close()

    def compare(self, source: str | Callable[[dict[str, Any]], Any]) -> tuple[Outcome, Outcome]:
        """Run a call with PyMongo and then with gmongo.

        Return the outcome of PyMongo and the outcome of gmongo.
        """
        return self.run_call(PYMONGO, source), self.run_call(GMONGO, source)

    @property
    def unsupported_features(self) -> frozenset[str]:
        """Descriptions of the features that calls needed and that the server does not support."""
        return frozenset(self._proxy.unsupported_features)

    def clear_unsupported_features(self) -> None:
        """Delete the recorded descriptions of unsupported features."""
        self._proxy.unsupported_features.clear()

    def run_gmongo_call(self, source: str | Callable[[dict[str, Any]], Any]) -> Outcome:
        return self.run_call(GMONGO, source)

    def run_call(self, driver: Driver, source: str | Callable[[dict[str, Any]], Any]) -> Outcome:
        """Run a call with one driver, and return the outcome.

        :param source: Lines of Python code, or a function that receives the dictionary of available
            names.
        """
        if driver not in self._clients:
            self._clients[driver] = driver.module.MongoClient(self.uri)  # type: ignore[attr-defined]
            self._clients[driver].admin.command("ping")
        comparable, returned, error, text = ComparableValues(), None, None, ""
        if self._documents_are_changed:
            self._reset()
        self._proxy.refused_names.clear()
        with self._interruption_after_timeout(driver), self._available_names(driver) as names:
            self._proxy.take_commands()
            try:
                with gevent.Timeout(self._call_timeout):
                    value = source(names) if callable(source) else _run_lines(source, names)
                    returned = comparable.convert(value)
            except (Exception, gevent.Timeout) as raised:
                error, text = comparable.convert_error(raised), str(raised)
            sent = self._take_sent_commands(names)
            if self._proxy.refused_names:
                # The call may have sent other commands before the rejected command.
                self._documents_are_changed = True
                rejected = ", ".join(sorted(self._proxy.refused_names))
                raise ForeignDatabaseError(f"the call uses {rejected}, which {self._foreign_reason}")
        commands = [_comparable_command(each, comparable) for each in sent]
        if self._fail_point_is_set:
            self._control_client.admin.command("configureFailPoint", "failCommand", mode="off")
            self._fail_point_is_set = False
        self._documents_are_changed = not all(name[0] in _READ_COMMANDS for name, *_ in commands)
        try:
            documents = self._remaining_documents(comparable)
        except pymongo.errors.NetworkTimeout as timeout:
            self._proxy.unsupported_features.add(f"the server does not list its documents: {str(timeout)[:40]}")
            documents = None
        return Outcome(returned, error, commands, documents, text)

    def _interruption_after_timeout(self, driver: Driver) -> AbstractContextManager[None]:
        # A `gevent.Timeout` already interrupts gmongo.
        if driver is GMONGO:
            return nullcontext()
        return interrupt_after(self._call_timeout, lambda: self._proxy.unsupported_features.add(NO_REPLY_REASON))

    @contextmanager
    def _available_names(self, driver: Driver) -> Iterator[dict[str, Any]]:
        """Yield the dictionary of names that a call can use."""
        clients: list[Any] = [self._clients[driver]]
        module: Any = driver.module

        def client_with(*args: Any, **options: Any) -> Any:
            """Create a client with options. By default, the client connects to the proxy."""
            client = module.MongoClient(*(args or (self.uri,)), **options)
            clients.append(client)
            return client

        main_client = self._clients[driver]
        names = {name: getattr(module, name) for name in module.__all__}
        names.update(
            {
                "m": module,
                "errors": module.errors,
                "gridfs": driver.gridfs,
                "GridFS": driver.gridfs.GridFS,  # type: ignore[attr-defined]
                "GridFSBucket": driver.gridfs.GridFSBucket,  # type: ignore[attr-defined]
                "client": main_client,
                "clients": clients,
                "db": main_client[self._database],
                "c": main_client[self._database].things,
                "uri": self.uri,
                "Client": client_with,
                "fail": self._set_fail_point,
                "bson": bson,
                **{name: getattr(bson, name) for name in _BSON_TYPES},
                "SON": SON,
                "RawBSONDocument": RawBSONDocument,
                "CodecOptions": CodecOptions,
                "DECIMALS": TypeRegistry([DecimalCodec()]),
                "Decimal": decimal.Decimal,
                "uuid": uuid,
                "U": uuid.UUID(int=7),
                "datetime": datetime,
                "raised_by": _result_or_error,
            }
        )
        try:
            yield names
        finally:
            for client in clients[1:]:
                client.close()

    def _set_fail_point(self, command: str | list[str], times: Any = 1, **data: Any) -> None:
        if self._rejects_other_databases:
            raise ForeignDatabaseError("the call sets a fail point, which affects the whole server")
        commands = [command] if isinstance(command, str) else command
        mode = {"times": times} if isinstance(times, int) else times
        try:
            self._control_client.admin.command(
                "configureFailPoint", "failCommand", mode=mode, data={"failCommands": commands, **data}
            )
        except pymongo.errors.OperationFailure as error:
            self._proxy.unsupported_features.add(f"fail points ({error.code}): {str(error)[:80]}")
            raise
        self._fail_point_is_set = True  # not reached if the server does not support fail points

    def _take_sent_commands(self, names: dict[str, Any]) -> list[RecordedCommand]:
        """Return the commands that a call has sent.

        First run a ping with each client. After the reply, all unacknowledged commands have arrived.
        """
        for client in names["clients"]:
            _result_or_error(lambda client=client: client.admin.command("ping", comment=_BARRIER_COMMENT))
        return [sent for sent in self._proxy.take_commands() if sent.body.get("comment") != _BARRIER_COMMENT]

    def _drop_all(self) -> None:
        """Drop the databases that calls have used."""
        for name in sorted(self._proxy.used_databases & set(self._control_client.list_database_names())):
            self._control_client.drop_database(name)

    def _reset(self) -> None:
        self._drop_all()
        self._proxy.used_databases.add(self._database)
        self._control_client[self._database].things.insert_many([dict(document) for document in DOCUMENTS])

    def _remaining_documents(self, comparable: ComparableValues) -> Any:
        """Return the documents of all databases that calls have used, or None for nx-27017."""
        if self.name == "nx-27017":
            return None  # this server sometimes lists collections that were dropped
        if self._documents_are_changed:
            return self._all_documents(comparable)
        if self._unchanged_documents is None:
            self._unchanged_documents = self._all_documents(comparable)
        return self._unchanged_documents

    def _all_documents(self, comparable: ComparableValues) -> Any:
        documents = []
        for name in sorted(self._proxy.used_databases & set(self._control_client.list_database_names())):
            # The options of a view contain its definition, so `system.views` is omitted.
            descriptions = self._control_client[name].list_collections(filter={"name": {"$ne": "system.views"}})
            for description in sorted(descriptions, key=lambda each: each["name"]):
                collection = self._control_client[name][description["name"]]
                values = sorted((comparable.convert(each) for each in collection.find()), key=repr)
                documents.append((name, description["name"], repr(description.get("options")), values))
        return documents


def _fault_of_unacknowledged(server: tuple[str, int], call_timeout: float | None = None) -> str:
    """Return a text that describes how a server violates the protocol for unacknowledged commands, or
    an empty text.

    After a violation of the protocol, the next command on the connection can fail.
    """
    with socket.create_connection(server, timeout=call_timeout) as connection:
        try:
            for number, flags in ((1, 2), (2, 0)):
                body = struct.pack("<IB", flags, 0) + bson.encode({"ping": 1, "$db": "admin"})
                connection.sendall(struct.pack("<iiii", 16 + len(body), number, 0, 2013) + body)
            reply = connection.recv(16, socket.MSG_WAITALL)[8:12]
        except ConnectionError:  # the server closed the connection after the unacknowledged command
            reply = b""
    if not reply:
        return "the server closes the connection after an unacknowledged command"
    return "" if reply == struct.pack("<i", 2) else "the server replies to an unacknowledged command"


def _run_lines(source: str, names: dict[str, Any]) -> Any:
    """Run lines of Python code.

    If the last line is an expression, return the value of the expression.
    """
    tree = ast.parse(textwrap.dedent(source))
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, source, "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), source, "exec"), names)
    return eval(compile(ast.Expression(last.value), source, "eval"), names)


def _result_or_error(call: Callable[[], Any]) -> Any:
    """Return the result of a function, or the error that the function raises.

    With this function, a row can continue after an error.
    """
    try:
        return call()
    except Exception as error:
        return error


def _comparable_command(sent: RecordedCommand, comparable: ComparableValues) -> Any:
    """Return the first field of a command, the other fields sorted by name, and whether the command
    belongs to a session and is acknowledged.
    """
    body = _without_default_fields({name: value for name, value in sent.body.items() if name != "txnNumber"})
    if "txnNumber" in sent.body:
        body["txnNumber"] = True
    first, *others = comparable.convert(body)[1]
    return first, tuple(sorted(others)), "lsid" in sent.body, sent.acknowledged


def _without_default_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_default_fields(item) for name, item in value.items() if (name, item) not in _DEFAULT_FIELDS
        }
    return [_without_default_fields(item) for item in value] if isinstance(value, list) else value

"""Send invalid commands to a server and to a simulated deployment, and compare the replies."""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

from tests.simulation.servers.wire_client import WireClient

from .cases import DATABASE_NAME, DOCUMENTS, Case, random_cases

_CODEC: CodecOptions[Any] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_AUTO)
_EXPIRED_CODE = 50  # Error code MaxTimeMSExpired. A slow server returns this code for a valid command.
# Fields that must be equal in the replies to the commands in `_DATA_COMMANDS`.
_COMPARED_FIELDS = ("ok", "n", "nModified", "values", "upserted", "numIndexesBefore", "numIndexesAfter", "note")
_COMPARED_FIELDS += ("nIndexesWas", "ns", "dropped", "cursorsNotFound", "cursorsUnknown", "value")
_DATA_COMMANDS = frozenset({
    "find", "insert", "update", "delete", "findAndModify", "aggregate", "count", "distinct", "getMore", "killCursors",
    "createIndexes", "dropIndexes", "listIndexes", "create", "collMod", "drop", "renameCollection", "dropDatabase"
})  # fmt: skip


class Client(WireClient):
    """A connection that sends encoded commands to a server."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address
        self.run({"hello": 1})

    def reply_to(self, body: bytes) -> dict[str, Any]:
        """Return the reply to an encoded command, or ``{"closed": True}`` if the server closes the
        connection.
        """
        self.socket.sendall(struct.pack("<iiiiIB", 21 + len(body), 1, 0, 2013, 0, 0) + body)
        try:
            (length,) = struct.unpack("<i", self.read(16)[:4])
            return bson.decode(self.read(length - 16)[5:], _CODEC)
        except (EOFError, OSError):
            WireClient.__init__(self, self.address)
            return {"closed": True}

    def reset(self) -> None:
        """Restore the collections, indexes and documents with which each case starts.

        To save time, change only the collections and indexes that a case has changed.
        """
        self.run({"killAllSessions": []})
        listed = self.run({"listCollections": 1}, DATABASE_NAME)["cursor"]["firstBatch"]
        changed_names = [each["name"] for each in listed if each["name"] != "w" or each["options"]]
        for name in changed_names:
            self.run({"drop": name}, DATABASE_NAME)
        indexes = self.run({"listIndexes": "w"}, DATABASE_NAME).get("cursor", {}).get("firstBatch", ())
        if [index["name"] for index in indexes] != ["_id_", "q"]:
            self.run({"drop": "w"}, DATABASE_NAME)
            self.run({"createIndexes": "w", "indexes": [{"key": {"q": 1}, "name": "q"}]}, DATABASE_NAME)
        self.run({"delete": "w", "deletes": [{"q": {}, "limit": 0}]}, DATABASE_NAME)
        self.run({"insert": "w", "documents": DOCUMENTS}, DATABASE_NAME)
        self.run({"dropAllUsersFromDatabase": 1}, DATABASE_NAME)


def compared_parts(command_name: str, reply: dict[str, Any]) -> Any:
    """Return the parts of a reply that must be equal on the server and in the simulation."""
    if not reply.get("ok"):
        parts = {name: reply[name] for name in ("ok", "code", "codeName", "errorLabels") if name in reply}
        return {**parts, "fields": list(reply)}
    if command_name not in _DATA_COMMANDS:
        return {"ok": reply["ok"]}
    compared = {name: reply[name] for name in reply if name in _COMPARED_FIELDS}
    if isinstance(compared.get("value"), dict):
        compared["value"] = {name: value for name, value in compared["value"].items() if name != "_id"}
    if "cursor" in reply:
        compared["cursor"] = len(reply["cursor"].get("firstBatch", ()))
    if "writeErrors" in reply:
        compared["writeErrors"] = [(error["index"], error["code"], list(error)) for error in reply["writeErrors"]]
    if "writeConcernError" in reply:
        compared["writeConcernError"] = reply["writeConcernError"]["code"]
    return compared


def is_refused(reply: dict[str, Any]) -> bool:
    """Return True if the reply says that the simulation does not support the command or a part of the
    command.
    """
    return "the simulated deployment does not support" in reply.get("errmsg", "")


def outcome(case: Case, server_reply: dict[str, Any], simulation_reply: dict[str, Any]) -> str:
    """Return ``same``, ``refused`` (the simulation does not support the command), or the kind of
    difference.
    """
    if _EXPIRED_CODE in (server_reply.get("code"), simulation_reply.get("code")):
        return "same"
    expected, actual = compared_parts(case.name, server_reply), compared_parts(case.name, simulation_reply)
    if bson.encode({"": expected}) == bson.encode({"": actual}):
        return "same"
    if is_refused(simulation_reply):
        return "refused"
    if "cannot execute" in simulation_reply.get("errmsg", ""):
        return "internal error"
    if bool(server_reply.get("ok")) != bool(simulation_reply.get("ok")):
        return "only the simulation fails" if server_reply.get("ok") else "only the server fails"
    if server_reply.get("code") != simulation_reply.get("code"):
        return "different code"
    return "different fields"


def _drop_all(client: Client, database: str) -> None:
    for each in client.run({"listCollections": 1}, database)["cursor"]["firstBatch"]:
        if not each["name"].startswith("system."):
            client.run({"drop": each["name"]}, database)


def differences(
    server_address: str, simulation_address: str, seed: int, case_count: int, outcome_counts: Counter[str]
) -> Iterator[tuple[Any, ...]]:
    """Run random cases on a server and a simulated server. Add each outcome to `outcome_counts`.

    Yield the case, the outcome and the two replies for each outcome except ``same`` and ``refused``.
    """
    clients = [Client(server_address), Client(simulation_address)]
    for client in clients:
        _drop_all(client, "admin")
        _drop_all(client, DATABASE_NAME)
    dirty = True
    for case in itertools.islice(random_cases(seed), case_count):
        if dirty:
            for client in clients:
                client.reset()
        replies = [client.reply_to(case.encode()) for client in clients]
        dirty = any(reply.get("ok") for reply in replies) and case.name not in _READ_COMMANDS
        dirty |= any(name == "startTransaction" for name, _ in case.pairs)
        if dirty and case.database == "admin":
            for client in clients:
                _drop_all(client, "admin")
        kind = outcome(case, *replies)
        outcome_counts[kind] += 1
        if kind not in ("same", "refused"):
            yield case, kind, *replies


_READ_COMMANDS = frozenset({"find", "count", "distinct", "hello", "isMaster", "ping", "listIndexes", "listCollections",
                       "listDatabases", "buildInfo", "getParameter", "connectionStatus", "usersInfo", "serverStatus",
                       "getMore", "killCursors", "dbStats", "collStats"})  # fmt: skip

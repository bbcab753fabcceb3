"""A case of the recorded answers: documents, commands, and the answer of a server to each command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bson import CodecOptions
from bson.codec_options import DatetimeConversion

from .notation import from_json, is_wrapper, to_json, to_line

DATA_FOLDER = Path(__file__).with_name("data")
DATABASE_NAME = "gmongo_answers"
# An error message of the server may end in the middle of a character.
_CODEC: CodecOptions[Any] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS, unicode_decode_error_handler="replace"
)
# Maximum number of `getMore` commands that read the expected events of a change stream.
_MAX_GET_MORES = 40
# Reply fields that an answer omits: the error message, and fields that depend on time or deployment.
_VOLATILE_FIELDS = ("$clusterTime", "operationTime", "electionId", "opTime", "topologyVersion", "errmsg")
_MAX_TIME_EXPIRED = 50  # Error code MaxTimeMSExpired.


@dataclass
class Case:
    """One case of a data file.

    :param file: the name of the data file, without the ending.
    :param fields: ``name``, ``documents`` (documents of the collection ``cases``), ``others``
        (documents of the collection ``others``), ``run`` (the commands) and ``answers`` (one for each
        command). If a server gave the answers, ``server`` is its version. Otherwise,
        ``documented`` names a page of the manual or a source file of MongoDB. ``since`` is the first
        server version with these answers.
    """

    file: str
    fields: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.fields["name"])

    @property
    def version(self) -> str:
        """The major and minor server version to which the answers belong."""
        major, minor = (self.fields.get("since") or self.fields["server"]).split(".")[:2]
        return f"{major}.{minor}"

    @property
    def expected(self) -> Any:
        return self.fields.get("answers")


def files(names: Sequence[str] = ()) -> list[Path]:
    """Return the paths of the data files `names`, or of all data files if no names are given."""
    return [DATA_FOLDER / f"{name}.jsonl" for name in names] or sorted(DATA_FOLDER.glob("*.jsonl"))


def cases(*names: str) -> Iterator[Case]:
    """Read the cases of the data files `names`, or of all data files if no names are given."""
    for path in files(names):
        with path.open(encoding="utf-8") as lines:
            for text in lines:
                yield Case(path.stem, json.loads(text))


def insert_documents(case: Case, database: Any) -> None:
    """Drop all collections of a database, and insert the documents of a case."""
    names = database.list_collection_names()
    if any(name.startswith("system.") for name in names):
        database.client.drop_database(database)  # `drop_database` is ten times slower than `drop_collection`
    else:
        for name in names:
            database.drop_collection(name)
    for collection, field in (("cases", "documents"), ("others", "others")):
        if field in case.fields:
            documents = from_json(case.fields[field])
            database.command({"insert": collection, "documents": documents}, codec_options=_CODEC)


def run_case(case: Case, database: Any) -> Any:
    """Insert the documents of a case into a `Database` of gmongo or PyMongo, and run the commands.
    Return the answers in the notation of the data files.
    """
    insert_documents(case, database)
    replies: list[Any] = []
    sessions: dict[int, Any] = {}
    try:
        for template in case.fields["run"]:
            command = _with_answers(_with_database_name(template, DATABASE_NAME, database.name), replies)
            replies.append(_run_command(from_json(command), database, sessions))
    finally:
        for session in sessions.values():
            session.end_session()
    return [_with_database_name(stable_reply(to_json(reply)), database.name, DATABASE_NAME) for reply in replies]


def difference(recorded: Any, answer: Any, path: str = "") -> str | None:
    """Describe the first part of `answer` that differs from the recorded answer. Return None if the
    answers are equal.
    """
    if isinstance(recorded, dict) and list(recorded) == ["$any"]:
        return None if type_name(answer) == recorded["$any"] else f"{path}: {to_line(answer)} is no {recorded['$any']}"
    pairs: Any = ()
    if isinstance(recorded, dict) and isinstance(answer, dict) and list(recorded) == list(answer):
        pairs = recorded.items()
    elif isinstance(recorded, list) and isinstance(answer, list) and len(recorded) == len(answer):
        pairs = enumerate(recorded)
    elif to_line(recorded) != to_line(answer):
        return f"{path}: recorded {to_line(recorded)}, answered {to_line(answer)}"
    parts = (difference(part, answer[name], f"{path}.{name}" if path else str(name)) for name, part in pairs)
    return next(filter(None, parts), None)


def type_name(value: Any) -> str:
    """Return the name of a value's type. In a recorded answer, ``{"$any": name}`` stands for any
    value whose type has this name.
    """
    if is_wrapper(value):
        return str(next(iter(value)))
    return "document" if isinstance(value, dict) else type(value).__name__


def _run_command(command: dict[str, Any], database: Any, sessions: dict[int, Any]) -> Any:
    """Run one command of a case, and return the reply.

    Some fields of a command in a data file control the run, and are not sent to the server. ``$db``
    is the name of the database, if the command does not use the default database. ``lsid`` is the
    number of the session. ``startTransaction`` starts a transaction in the session ``lsid``.
    An integer ``$events`` is the minimum number of events to read with repeated `getMore` commands.
    Any other value of ``$events`` is the ``_id`` in the ``documentKey`` of the last event to read.
    ``$only`` is a list of paths: the answer to a successful command contains only their values.
    """
    expected_end, paths = command.pop("$events", None), command.pop("$only", None)
    command_database = database.client[command.pop("$db", database.name)]
    session = _session(command, database, sessions) if "lsid" in command else None
    options = {"check": False, "codec_options": _CODEC, "session": session}
    reply = command_database.command(command, **options)
    for _ in range(_MAX_GET_MORES if expected_end and "cursor" in reply else 0):
        batch = reply["cursor"]["nextBatch"]
        if _is_complete(batch, expected_end):
            break
        reply = command_database.command(command, **options)
        if "cursor" not in reply:
            break
        reply["cursor"]["nextBatch"] = batch + reply["cursor"]["nextBatch"]
    if paths is None or not reply["ok"]:
        return reply
    return {path: _value_at(reply, path.split(".")) for path in paths}


def _is_complete(events: list[Any], expected_end: Any) -> bool:
    if isinstance(expected_end, int):
        return len(events) >= expected_end
    return any(event.get("documentKey") == {"_id": expected_end} for event in events)


def _value_at(value: Any, path: list[str]) -> Any:
    """Return the value at a path of a document, or None if no value is at the path."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _session(command: dict[str, Any], database: Any, sessions: dict[int, Any]) -> Any:
    number = command.pop("lsid")
    if number not in sessions:
        sessions[number] = database.client.start_session()
    if command.pop("startTransaction", False):
        concern = command.pop("readConcern", None)
        sessions[number].start_transaction(concern and type(database.read_concern)(**concern))
    return sessions[number]


def _with_answers(value: Any, replies: list[Any]) -> Any:
    """Return a copy of `value` in which the value at the path ``[number, name ...]`` of `replies`
    replaces ``{"$answer": [number, name ...]}``.
    """
    if isinstance(value, list):
        return [_with_answers(part, replies) for part in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["$answer"]:
        answer: Any = replies
        for name in value["$answer"]:
            answer = answer[name]
        return to_json(answer)
    return {name: _with_answers(part, replies) for name, part in value.items()}


def _with_database_name(value: Any, old_name: str, new_name: str) -> Any:
    return json.loads(to_line(value).replace(old_name, new_name)) if old_name != new_name else value


def stable_reply(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply without error messages, without an ``ok`` of 0.0 or 1.0, and without values that
    differ in each run. Replace a cursor ID other than 0 by 1.
    """
    stable = {name: value for name, value in reply.items() if name not in _VOLATILE_FIELDS}
    if stable.get("ok") in (0.0, 1.0) and isinstance(stable["ok"], float):
        del stable["ok"]
    # After this error, the server sometimes adds the same error as a write concern error.
    if stable.get("code") == _MAX_TIME_EXPIRED:
        stable.pop("writeConcernError", None)
    for name in ("writeErrors", "writeConcernError"):
        errors = stable.get(name, [])
        for error in errors if isinstance(errors, list) else [errors]:
            error.pop("errmsg", None)
    cursor = stable.get("cursor")
    if isinstance(cursor, dict) and "id" in cursor:
        stable["cursor"] = {**cursor, "id": int(cursor["id"] != {"$numberLong": "0"})}
    return stable

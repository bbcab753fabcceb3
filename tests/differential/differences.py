"""Where gmongo deliberately answers otherwise than PyMongo. Whatever is not here fails.

A difference names the calls in which it is seen, and the part of the outcome that it explains; all other parts are
compared. Each says why, and where the pages of differences describe it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .portrait import Own, Raised, same
from .scene import Outcome

Judge = Callable[[Any, Any], bool]

ACCIDENTS = frozenset({"AttributeError", "KeyError", "IndexError", "SystemError", "StopIteration", "AssertionError"})
"""Errors that tell of a mistake in a program, not of one of its user's."""
_BAD_ARGUMENT = frozenset({"TypeError", "ValueError"})


class Kind(Enum):
    """What a difference is."""

    LAW = "a specification demands it"
    SAFER = "PyMongo loses something, or fails late or by accident"
    MORE = "gmongo takes or does something that PyMongo refuses or cannot"
    FORM = "a form that no program should depend on"


@dataclass(frozen=True)
class Difference:
    """One deliberate difference.

    :param reason: why, in one sentence.
    :param line: a piece of the line in `docs/differences.md` or `docs/differences-internals.md`.
    :param calls: a regular expression that is found in the calls in which it is seen.
    :param parts: the fields of the outcome that it explains as a whole.
    :param judge: says of two parts of an outcome that differ whether this difference explains them.
    """

    kind: Kind
    reason: str
    line: str
    calls: str = ""
    parts: tuple[str, ...] = ()
    judge: Judge | None = None

    def sees(self, call: str) -> bool:
        """Whether a call may show it."""
        return re.search(self.calls, call) is not None


def _is_bad_argument(theirs: Any, ours: Any) -> bool:
    """Both refuse an argument: PyMongo with another built-in error, perhaps one that it stumbles over."""
    if isinstance(theirs, str) and theirs in ACCIDENTS and ours in ("InvalidOperation", *_BAD_ARGUMENT):
        return True
    if not (isinstance(theirs, Raised) and isinstance(ours, Raised)) or "PyMongoError" in theirs.classes:
        return False
    refused = _BAD_ARGUMENT.intersection(ours.classes)
    return theirs.classes[0] in ACCIDENTS | _BAD_ARGUMENT and bool(refused or "ConfigurationError" in ours.classes)


def _is_refused_early(theirs: Any, ours: Any) -> bool:
    """The server refuses what gmongo does not send."""
    return (
        isinstance(theirs, Raised)
        and isinstance(ours, Raised)
        and "OperationFailure" in theirs.classes
        and bool(_BAD_ARGUMENT.intersection(ours.classes))
    )


def _is_decoded(theirs: Any, ours: Any) -> bool:
    """The details of an error, of which PyMongo has a raw document."""
    if not (isinstance(ours, tuple) and ours[:1] == ("dict",) and isinstance(theirs, tuple)):
        return False
    return bool(theirs == ("RawBSONDocument", ours)) and "errmsg" in dict(ours[1])


def _is_labelled(theirs: Any, ours: Any) -> bool:
    """Two errors of bulks of which ours has the label that the server gave."""
    if not (isinstance(theirs, Raised) and isinstance(ours, Raised)):
        return False
    return bool(theirs._replace(labels=("RetryableWriteError",)) == ours) and theirs.labels == ()


def _is_any_successful(theirs: Any, ours: Any) -> bool:
    """PyMongo says so of an ordered bulk whose first write failed, as the others were not tried."""
    if isinstance(theirs, Own):
        return theirs.kind == "ClientBulkWriteResult" and bool(ours == ("NoneType", None))
    return bool(theirs == ("anySuccessful", ("bool", True)) and ours == ("anySuccessful", ("bool", False)))


def _is_text(theirs: Any, ours: Any) -> bool:
    """Two texts of the drivers' own."""
    return isinstance(theirs, tuple) and isinstance(ours, tuple) and theirs[:1] == ours[:1] == ("str",)


def _is_read_preference(theirs: Any, ours: Any) -> bool:
    """Two commands that differ in ``$readPreference`` alone."""
    if not (_is_command(theirs) and _is_command(ours)):
        return False
    one, other = (
        (each[0], tuple(field for field in each[1] if field[0] != "$readPreference"), *each[2:])
        for each in (theirs, ours)
    )
    return (one != theirs or other != ours) and same(one, other, _is_same_number)


def _is_overload_policy(theirs: Any, ours: Any) -> bool:
    """How often an operation is tried again."""
    return bool((theirs, ours) == (("int", 2), ("int", 5)))


def _is_numbered(theirs: Any, ours: Any) -> bool:
    """Two commands of which ours can be retried."""
    if not (_is_command(theirs) and _is_command(ours)) or theirs == ours:
        return False
    number = ("txnNumber", ("bool", True))
    return number not in theirs[1] and bool((theirs[1], theirs[2:]) == (_without(number, ours[1]), ours[2:]))


def _without(field: Any, fields: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each for each in fields if each != field)


def _is_ended(theirs: Any, ours: Any) -> bool:
    """The number of a cursor, and zero."""
    return isinstance(theirs, tuple) and theirs[:1] == ("Int64",) and bool(ours == ("int", 0))


def _is_same_number(theirs: Any, ours: Any) -> bool:
    """A number as an integer and as a float."""
    kinds = {"int", "float"}
    if not all(isinstance(each, tuple) and len(each) == 2 and each[0] in kinds for each in (theirs, ours)):
        return False
    return float(theirs[1]) == float(ours[1])


def _is_command(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 4 and isinstance(part[1], tuple) and isinstance(part[3], bool)


_COMMANDS = ("commands",)
_ALL = ("error", "returned", "commands", "left")

DIFFERENCES = (
    Difference(
        Kind.SAFER,
        "a bad argument is named in a TypeError or ValueError, where PyMongo stumbles over it or raises the other",
        "an argument of the wrong type",
        judge=_is_bad_argument,
    ),
    Difference(
        Kind.SAFER,
        "a filter that is no document is refused before it is sent; PyMongo leaves that to the server",
        "an argument of the wrong type",
        calls=r"(count_documents|distinct|DeleteOne|list_collections)\(",
        parts=_COMMANDS,
        judge=_is_refused_early,
    ),
    Difference(
        Kind.LAW,
        "read preferences are sent as the Server Selection specification has it for a single server: the application's "
        "own, and primaryPreferred with reads only",
        "`$readPreference` to a single server",
        judge=_is_read_preference,
    ),
    Difference(
        Kind.FORM,
        "the size of a capped collection is sent as it is given, and not made a double",
        "the size of a capped collection",
        calls="size=",
        parts=("left",),
        judge=_is_same_number,
    ),
    Difference(
        Kind.MORE,
        "GridFS asks for the file and its chunks in fewer commands, and cleans up after what was never written",
        "GridFS sends fewer commands",
        calls="GridFS",
        parts=_COMMANDS,
    ),
    Difference(
        Kind.MORE,
        "commitQuorum is a field of the createIndexes command; PyMongo puts it into the index, where servers refuse it",
        "`commitQuorum`",
        calls="commitQuorum",
        parts=_ALL,
    ),
    Difference(
        Kind.MORE,
        "index models can be compared",
        "models compare and show their fields",
        calls=r"IndexModel\(\"a\"\) == IndexModel",
        parts=("returned",),
    ),
    Difference(
        Kind.FORM,
        "the repr of a write model names its fields, and that of a read concern can be evaluated",
        "models compare and show their fields",
        calls=r"repr\((InsertOne|ReadConcern)",
        parts=("returned",),
    ),
    Difference(
        Kind.SAFER,
        "a namespace without a dot, which every server refuses, is refused when the model is made",
        "an argument of the wrong type",
        calls=r"namespace=\"x\"",
        parts=("returned", "commands"),
    ),
    Difference(
        Kind.MORE,
        "sort is taken in every form that a cursor takes, by updates too",
        "forms of `sort`, `hint`, `min`, `max` and `pipeline`",
        calls=r"sort=\[\(\"_id\", 1\)\]",
        parts=_ALL,
    ),
    Difference(
        Kind.MORE,
        "hint, min, max and pipeline are taken in every form in which they are clear",
        "forms of `sort`, `hint`, `min`, `max` and `pipeline`",
        calls=r"aggregate\(\(\{|aggregate\(\[.*hint=\[|find\(\)\.min\(\{",
        parts=_ALL,
    ),
    Difference(
        Kind.LAW,
        "each command of a bulk that can be retried has its number, as retryable writes demand; PyMongo numbers none "
        "if one of them writes many documents",
        "retryable commands of a bulk",
        calls=r"(Delete|Update)Many\(",
        judge=_is_numbered,
    ),
    Difference(
        Kind.FORM,
        "an update of a bulk carries upsert as the server understands it without it",
        "retryable commands of a bulk",
        calls=r"UpdateMany\(\{'_id': 1\}, \{'\$set': \{'a\.\$\[x\]'",
        parts=("error",),
    ),
    Difference(
        Kind.SAFER,
        "the options of a change stream are checked before it is opened",
        "an argument of the wrong type",
        calls=r"watch\(full_document=5\)",
        parts=("returned", "commands"),
    ),
    Difference(
        Kind.FORM,
        "a change stream asks for further batches of the size it was given; PyMongo asks for 2 if that was 1",
        "batches of one",
        calls=r"watch\(.*batch_size=1",
        parts=_COMMANDS,
    ),
    Difference(
        Kind.MORE,
        "a host may be the path of a Unix domain socket",
        "Unix domain socket",
        calls=r"MongoClient\(\"/tmp/mongodb-27017.sock",
        parts=("error", "returned"),
    ),
    Difference(
        Kind.LAW,
        "an operation is tried five times on an overloaded server, as the Client Backpressure specification began",
        "`maxAdaptiveRetries`",
        calls=r"o = client\.options",
        judge=_is_overload_policy,
    ),
    Difference(
        Kind.SAFER,
        "a port that no host can have is refused",
        "a port that no host can have",
        calls=r"port=(-1|0|70000)",
        parts=("error", "returned"),
    ),
    Difference(
        Kind.FORM,
        "times of client.options are floating-point seconds throughout",
        "times in `client.options`",
        calls=r"\.options",
        judge=_is_same_number,
    ),
    Difference(
        Kind.SAFER,
        "a closed client starts no sessions",
        "after `close()`",
        calls=r"z\.start_session\(\)",
        parts=("returned",),
    ),
    Difference(
        Kind.SAFER,
        "no value takes back what an earlier one protects",
        "an option given twice",
        calls="tls=true.*tls=False",
        parts=("error", "returned"),
    ),
    Difference(
        Kind.SAFER,
        "a certificate file that cannot be read is a ConfigurationError that names the option",
        "an argument of the wrong type",
        calls="tlsCAFile",
        parts=("error",),
    ),
    Difference(
        Kind.MORE,
        "j is taken as a keyword, too",
        "`j` as a keyword",
        calls=r"j=True, wtimeout=5",
        parts=("error", "returned"),
    ),
    Difference(
        Kind.MORE,
        "whatever is encoded, is encoded with the codec options of the object that is called",
        "codec options hold for everything",
        calls=r"filter=\{\"(options\.validator\.a|name)\": U|partialFilterExpression=\{\"a\": U|"
        r"cursor_command\(\"find\", \"things\", filter=\{\"_id\": (U|Decimal)",
        parts=("error", "returned", "commands"),
    ),
    Difference(
        Kind.LAW,
        "a write concern error ends no ordered bulk, whatever its code, where the command is not tried again",
        "a retryable write concern error of a bulk",
        calls=r"fail\(\"delete\",.*\"code\": 189, .*\n.*bulk_write",
        parts=("error", "commands", "left"),
    ),
    Difference(
        Kind.MORE,
        "the error of a bulk has the label of a write concern error that is not tried again",
        "a retryable write concern error of a bulk",
        calls=r"errorLabels=.*\n.*insert_many",
        judge=_is_labelled,
    ),
    Difference(
        Kind.FORM,
        "the details of an error are a dictionary, where the documents of the collection are raw",
        "`details` of errors with `RawBSONDocument`",
        calls=r"document_class=RawBSONDocument",
        judge=_is_decoded,
    ),
    Difference(
        Kind.FORM,
        "a cursor that has ended has no cursor_id any more",
        "`cursor_id` of a cursor that has ended",
        calls=r"cursor\.cursor_id",
        judge=_is_ended,
    ),
    Difference(
        Kind.SAFER,
        "bounds, projections, numbers and times that no server takes are refused when the cursor is made",
        "an argument of the wrong type",
        calls=r"min=5|max\(\[\]\)|max_await_time_ms\(-1\)|projection=\"name\"|find\(\{\}, 'name'\)|skip=-1|"
        r"read_preference=5",
        parts=_ALL,
    ),
    Difference(
        Kind.FORM,
        "a tailable cursor whose first batch is empty is asked for the next one before it ends for now",
        "a tailable cursor without documents",
        calls=r"cursor_type=CursorType\.TAILABLE\)\nlist\(cursor\)",
        parts=_COMMANDS,
    ),
    Difference(
        Kind.MORE,
        "raw batches of an aggregation begin with the reply to the command; PyMongo asks for an empty one first",
        "raw batches of an aggregation",
        calls="aggregate_raw_batches",
        parts=_COMMANDS,
    ),
    Difference(
        Kind.MORE,
        "an index may be named by a dictionary of its keys",
        "`drop_index` takes",
        calls=r"drop_index\(.*\{.x.: 1\}",
        parts=_ALL,
    ),
    Difference(
        Kind.MORE,
        "db.command takes any mapping, and a read concern",
        "`db.command` takes",
        calls=r"db\.command\(RawBSONDocument|read_concern=m\.read_concern",
        parts=_ALL,
    ),
    Difference(
        Kind.SAFER,
        "a timeout of server selection has no RetryableWriteError label: nothing was sent, and it is not tried again",
        "a timeout of server selection",
        calls="serverSelectionTimeoutMS=50",
        parts=("returned",),
    ),
    Difference(
        Kind.MORE,
        "an error's code is there for errors of elections, too",
        "`code` of `NotPrimaryError`",
        calls=r"errors\.NotPrimaryError\(",
        parts=("error", "returned"),
    ),
    Difference(
        Kind.SAFER,
        "the comment of an unacknowledged insert_many is sent",
        "unacknowledged writes",
        calls=r"w0\.insert_many\(.*comment=",
        parts=_COMMANDS,
    ),
    Difference(
        Kind.SAFER,
        "administration with w=0 waits for the reply, and reports its error; PyMongo asks for none",
        "unacknowledged writes",
        calls=r"w0\.(create_index|drop|rename|aggregate)\(|Client\(w=0\)\.drop_database",
        parts=("returned", "commands", "error"),
    ),
    Difference(
        Kind.FORM,
        "what options are called in the result of parse_uri is the specification's appName, not appname",
        "times in `client.options`",
        calls=r"appName=x&w=1",
        parts=("returned",),
    ),
    Difference(
        Kind.FORM,
        "CANONICALIZE_HOST_NAME is one of five words, and stays one",
        "times in `client.options`",
        calls="CANONICALIZE_HOST_NAME",
        parts=("returned",),
    ),
    Difference(
        Kind.SAFER,
        "an aborted upload leaves no empty collections, as nothing was sent",
        "GridFS sends fewer commands",
        calls=r"w\.abort\(\)",
        parts=("left",),
    ),
    Difference(
        Kind.SAFER,
        "an upload that fails leaves no chunks; PyMongo leaves those that the server has stored",
        "the chunks of a failed upload",
        calls=r"(?s)fail\(\"insert\", writeConcernError.*(\.put|upload_from_stream)\(",
        parts=("left",),
    ),
    Difference(
        Kind.FORM,
        "an empty value of an option is sent as it is given; PyMongo leaves some of them out",
        "an empty value",
        calls=r"\((comment|hint|max_scan|collation|let|sort)=(None|0|''|b''|\[\]|\{\})\)",
        parts=("error", "returned", "commands"),
    ),
    Difference(
        Kind.FORM,
        "the options of a session are true or false, whatever they are given as",
        "an empty value",
        calls=r"start_session\((snapshot|causal_consistency)=",
        parts=("returned",),
    ),
    Difference(
        Kind.SAFER,
        "a client's ordered bulk whose first write fails does not claim that any was successful",
        "`anySuccessful`",
        calls=r"client\.bulk_write",
        judge=_is_any_successful,
    ),
    Difference(
        Kind.FORM,
        "a time limit that is too short to begin with is explained in other words",
        "an argument of the wrong type",
        calls=r"m\.timeout\(0\.0",
        judge=_is_text,
    ),
    Difference(
        Kind.SAFER,
        "a write model checks its collation, and GridFS its chunk size, when it is made",
        "an argument of the wrong type",
        calls=r"UpdateOne\(.*collation=5\)\), raised_by|chunk_size_bytes=\"x\"",
        parts=("returned",),
    ),
    Difference(
        Kind.FORM,
        "the error of a client bulk whose results cannot be read is the exception, as if the command itself fails",
        "`error` of a `ClientBulkWriteException`",
        calls=r"fail\(\"getMore\".*\n.*client\.bulk_write",
        parts=("returned", "error"),
    ),
    Difference(
        Kind.MORE,
        "a program may ask for an option that `parse_uri` found in the spelling of either driver",
        'the names of `parse_uri(...)["options"]`',
        calls=r"__mro__\[1\]|parsed\.get\(\"MAXPOOLSIZE",
        parts=("returned",),
    ),
    Difference(
        Kind.FORM,
        "the raw result of an unacknowledged delete or client bulk is empty, as that of other writes",
        "unacknowledged writes",
        calls=r"w0\.delete_|Client\(w=0\)\.bulk_write",
        parts=("returned",),
    ),
)


def explained(call: str, theirs: Outcome, ours: Outcome) -> set[int] | None:
    """The numbers of the differences that explain how two outcomes differ, or None if something is left over."""
    applicable = [(number, each) for number, each in enumerate(DIFFERENCES) if each.sees(call)]
    used: set[int] = set()

    def accept(theirs: Any, ours: Any) -> bool:
        for number, each in applicable:
            if each.judge is not None and each.judge(theirs, ours):
                used.add(number)
                return True
        return False

    for part in ("error", "returned", "commands", "left"):
        whole = [number for number, each in applicable if part in each.parts]
        if not same(getattr(theirs, part), getattr(ours, part), accept):
            if not whole:
                return None
            used.update(whole)
    return used


def check(call: str, theirs: Outcome, ours: Outcome) -> set[int]:
    """Fail if two outcomes differ for a reason that is not listed; returns the numbers of those that are seen."""
    used = explained(call, theirs, ours)
    if used is None:
        told = [
            f"{part}:\n  PyMongo {getattr(theirs, part)!r} {theirs.text if part == 'error' else ''}\n"
            f"  gmongo  {getattr(ours, part)!r} {ours.text if part == 'error' else ''}"
            for part in _ALL
            if getattr(theirs, part) != getattr(ours, part)
        ]
        raise AssertionError("\n".join(["the outcomes differ", *told]))
    return used

"""The one table of what does not pass, and why. Every reason begins with its class, and is looked at in every run.

A rule says what it takes for its reason to hold, and applies only while that is so. Where it says nothing, its cases
are run and must fail. So a reason that has gone turns a test red.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from inspect import signature
from typing import Any

from bson.binary import UUID_SUBTYPE, Binary

from gmongo.client_session import SessionOptions
from gmongo.collection import Collection
from gmongo.gridfs import GridFSBucket
from gmongo.options.table import find
from tests.support.mongocryptd import analysed

NOT_IN_GMONGO = "not in gmongo"
NOT_SIMULATED = "not in the simulation"
WRONG_HERE = "wrong here"
REQUIREMENT = "requirement"
BY_THE_TEST = "skipped by the test"

CLASSES = (NOT_IN_GMONGO, NOT_SIMULATED, WRONG_HERE, REQUIREMENT, BY_THE_TEST)


@dataclass(frozen=True)
class Use:
    """A case on a kind of deployment.

    :param file: its name, such as ``"find"``.
    :param case: its description.
    :param topology: of the deployment.
    :param words: all keys in the case and in the entities of its file, alone and after the key above
        (``"collectionOptions.timeoutMS"``), and the names of its operations with ``()``.
    """

    file: str
    case: str
    topology: str
    words: frozenset[str]


@dataclass(frozen=True)
class Rule:
    """Cases that do not pass.

    :param kind: one of :data:`CLASSES`.
    :param reason: for people.
    :param words: it applies to cases with one of these; to all if there are none.
    :param files: and to these files only.
    :param cases: and to these cases only.
    :param topology: and to this topology only.
    :param holds: whether the reason is still true, and the cases are not run. None: they are run, and must fail.
    """

    kind: str
    reason: str
    words: frozenset[str] = frozenset()
    files: str = "*"
    cases: str = "*"
    topology: str = "*"
    holds: Callable[[], bool] | None = None

    @property
    def text(self) -> str:
        """Class and reason."""
        return f"{self.kind}: {self.reason}"

    def applies(self, use: Use) -> bool:
        """Whether the case is one of these."""
        return (
            (not self.words or bool(self.words & use.words))
            and fnmatchcase(use.file, self.files)
            and fnmatchcase(use.case, self.cases)
            and fnmatchcase(use.topology, self.topology)
        )


def rule_for(use: Use) -> Rule | None:
    """Why a case does not pass; None if it has to."""
    found = next((rule for rule in RULES if rule.applies(use)), None)
    return found if found is None or found.holds is None or found.holds() else None


def words_of(*parts: Any) -> frozenset[str]:
    """The words of parts of a file, for :class:`Use`."""
    found: set[str] = set()
    for part in parts:
        _add_words(found, part, "")
    return frozenset(found)


def _add_words(found: set[str], value: Any, above: str) -> None:
    if isinstance(value, dict):
        if "object" in value and "name" in value:
            found.add(f"{value['name']}()")
        for key, inner in value.items():
            found |= {key, f"{above}.{key}"}
            _add_words(found, inner, key)
    elif isinstance(value, list):
        for inner in value:
            _add_words(found, inner, above)


def _absent(reason: str, words: str, holds: Callable[[], bool], **only: Any) -> Rule:
    return Rule(NOT_IN_GMONGO, reason, frozenset(words.split()), holds=holds, **only)


def _takes(function: Any, parameter: str) -> bool:
    return parameter in signature(function).parameters


def _contradicted(reason: str, files: str, cases: str = "*", topology: str = "*") -> Rule:
    return Rule(WRONG_HERE, reason, files=files, cases=cases, topology=topology)


_ENCRYPTS = frozenset({"autoEncryptOpts", "clientEncryption"})


def _unlike(reason: str, files: str, cases: str = "*", holds: Callable[[], bool] | None = None) -> Rule:
    return Rule(NOT_SIMULATED, reason, _ENCRYPTS, files, cases, holds=holds)


@cache
def _encrypted_fields_are_ignored() -> bool:
    fields = {"fields": [{"path": "a", "bsonType": "int", "keyId": Binary(bytes(16), UUID_SUBTYPE)}]}
    encrypted = {"type": 1, "schema": {"db.c": fields}}
    reply = analysed({"insert": "c", "documents": [{"a": 1}], "encryptionInformation": encrypted})
    return not reply["hasEncryptedPlaceholders"]


_WRAPPED = "the data key was encrypted by a real key management service, which no stand-in can decrypt"
_QUERYABLE = "Queryable Encryption: the analysis of commands, and what servers do with encrypted fields"
_ANALYSIS = "the analysis of such commands or schemas by mongocryptd"

RULES: tuple[Rule, ...] = (
    *(
        _unlike(_WRAPPED, files, cases)
        for files, cases in (
            ("accessToken-*", "*"),
            ("awsTemporary", "*"),
            ("azureKMS", "*"),
            ("gcpKMS", "*"),
            ("kmipKMS", "*"),
            ("basic", "*deterministic*"),
            ("bulk", "*"),
            ("bypassAutoEncryption", "*"),
            ("count", "*deterministic*"),
            ("distinct", "*deterministic*"),
            ("findOneAndUpdate", "*deterministic*"),
            ("findOneAndDelete", "*deterministic*"),
            ("delete", "*deterministic*"),
            ("explain", "*"),
            ("find", "*deterministic*"),
            ("findOneAndReplace", "*"),
            ("getMore", "*"),
            ("insert", "*"),
            ("localSchema", "A local schema should override"),
            ("namedKMS-rewrapManyDataKey", "rewrap to [!k]*"),
            ("replaceOne", "*"),
            ("rewrapManyDataKey", "rewrap with new [!K]*"),
            ("rewrapManyDataKey", "rewrap with new KMIP delegated*"),
            ("rewrapManyDataKey", "rewrap with current*"),
            ("rewrapManyDataKey-decrypt_failure", "*"),
            ("rewrapManyDataKey-encrypt_failure", "*"),
            ("types", "type=[!bdm]*"),
            ("types", "type=binData*"),
            ("types", "type=d[abo]*"),
            ("updateMany", "*deterministic*"),
            ("updateOne", "updateOne with deterministic*"),
        )
    ),
    *(
        _unlike(_ANALYSIS, files, cases)
        for files, cases in (
            ("badSchema", "Schema with*"),
            ("badQueries", "$text*"),
            ("badQueries", "$where*"),
            ("badQueries", "geo*"),
            ("badQueries", "other misc*"),
            ("badQueries", "$inc*"),
            ("badQueries", "$mul*"),
            ("badQueries", "$max*"),
            ("badQueries", "$min*"),
            ("badQueries", "array filters*"),
            ("badQueries", "positional*"),
            ("badQueries", "distinct with*"),
            ("validatorAndPartialFieldExpression", "*is an error"),
        )
    ),
    *(
        _unlike(_QUERYABLE, files, cases, _encrypted_fields_are_ignored)
        for files, cases in (
            ("QE-Text-*", "*"),
            ("client-bulkWrite-qe", "*"),
            ("fle2v2-Rangev2-*", "*"),
            ("fle2v2-[BEFIMUv]*", "*"),
            ("fle2v2-Compact", "*"),
            ("fle2v2-Delete", "*"),
            ("fle2v2-CreateCollection", "encryptedFields are consulted*"),
            ("poc-queryable-encryption", "*"),
        )
    ),
    # What PyMongo's API does not have either, or what gmongo leaves out.
    _absent("rawData", "arguments.rawData", lambda: not _takes(Collection.find_one, "raw_data")),
    _absent(
        "the snapshot time of a session",
        "sessionOptions.snapshotTime getSnapshotTime()",
        lambda: not _takes(SessionOptions.__init__, "snapshot_time"),
    ),
    _absent("MD5 of files", "arguments.disableMD5", lambda: not _takes(GridFSBucket.__init__, "disable_md5")),
    _absent("count, which PyMongo has removed", "count()", lambda: not hasattr(Collection, "count")),
    _absent("mapReduce, which PyMongo has removed", "mapReduce()", lambda: not hasattr(Collection, "map_reduce")),
    _absent(
        "batchSize of list_indexes",
        "listIndexes()",
        lambda: not _takes(Collection.list_indexes, "batch_size"),
        cases="listIndexes pins *",
    ),
    _absent(
        "waitQueueSize and waitQueueMultiple (CMAP-18)",
        "uriOptions.waitQueueSize uriOptions.waitQueueMultiple",
        lambda: find("waitQueueSize") is None and find("waitQueueMultiple") is None,
    ),
    _contradicted(
        "no killCursors after a getMore behind a load balancer failed in the network (LB-53)",
        "close-cursors",
        "timeoutMS is refreshed for close",
        topology="load-balanced",
    ),
    _contradicted(
        "the servers wait for 60 ms, and the limit is 100 ms or there is none",
        "runCursorCommand",
        "*ailable cursor *timeoutMS is refreshed for getMore* - failure",
    ),
    _contradicted(
        "as in PyMongo, the error of the command is raised, which has no result",
        "bulkWrite",
        "* is never committed",
    ),
)
"""The first rule that applies to a case gives the reason."""

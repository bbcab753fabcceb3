"""The one table of what is not run, and why. Every reason begins with its class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any

import gmongo
from gmongo import MongoClient
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from tests.spec.unified.requirements import Setting

NOT_YET = "not yet in gmongo"
NOT_IN_GMONGO = "not in gmongo"
NOT_SIMULATED = "not in the simulation"
WRONG_HERE = "wrong here"
REQUIREMENT = "requirement"
BY_THE_TEST = "skipped by the test"

CLASSES = (NOT_YET, NOT_IN_GMONGO, NOT_SIMULATED, WRONG_HERE, REQUIREMENT, BY_THE_TEST)


@dataclass(frozen=True)
class Use:
    """A case on a kind of deployment.

    :param file: suite and file, such as ``"crud/find"``.
    :param case: its description.
    :param setting: the deployment.
    :param words: all keys in the case and in the entities of its file, alone and after the key above
        (``"collectionOptions.timeoutMS"``), and the names of its operations with ``()``.
    """

    file: str
    case: str
    setting: Setting
    words: frozenset[str]


@dataclass(frozen=True)
class Rule:
    """Cases that are not run.

    :param kind: one of :data:`CLASSES`.
    :param reason: for people.
    :param words: it applies to cases with one of these; to all if there are none.
    :param files: and to these files only.
    :param cases: and to these cases only.
    :param topology: and to this topology only.
    :param auth: and only if users must log in.
    :param present: for a feature: whether it is there, so that the rule does not apply any more.
    """

    kind: str
    reason: str
    words: frozenset[str] = frozenset()
    files: str = "*"
    cases: str = "*"
    topology: str = "*"
    auth: bool = False
    present: Callable[[], bool] = lambda: False

    def applies(self, use: Use) -> bool:
        """Whether the case is one of these."""
        return (
            (not self.words or bool(self.words & use.words))
            and fnmatchcase(use.file, self.files)
            and fnmatchcase(use.case, self.cases)
            and fnmatchcase(use.setting.topology, self.topology)
            and (not self.auth or use.setting.auth)
            and not self.present()
        )


def reason_to_skip(use: Use) -> str | None:
    """Why a case is not run; None if it is."""
    return next((f"{rule.kind}: {rule.reason}" for rule in RULES if rule.applies(use)), None)


def words_of(*parts: Any) -> frozenset[str]:
    """The words of parts of a file, for :class:`Use`."""
    return frozenset(word for part in parts for word in _words(part, ""))


def _words(value: Any, above: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "object" in value and "name" in value:
            yield f"{value['name']}()"
        for key, inner in value.items():
            yield key
            yield f"{above}.{key}"
            yield from _words(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner, above)


def _feature(name: str, words: str, present: Callable[[], bool], **only: Any) -> Rule:
    return Rule(NOT_YET, name, frozenset(words.split()), present=present, **only)


def _absent(reason: str, words: str, **only: Any) -> Rule:
    return Rule(NOT_IN_GMONGO, reason, frozenset(words.split()), **only)


RULES: tuple[Rule, ...] = (
    # What PyMongo's API does not have either, or what gmongo leaves out.
    _absent("encryption", "clientEncryption autoEncryptOpts"),
    _absent("tracing", "observeTracingMessages expectTracingMessages"),
    _absent("rawData", "arguments.rawData"),
    _absent("timeoutMS of a database or collection", "databaseOptions.timeoutMS collectionOptions.timeoutMS"),
    _absent("timeoutMS of a session", "sessionOptions.defaultTimeoutMS"),
    _absent("timeoutMode", "arguments.timeoutMode"),
    _absent("the snapshot time of a session", "sessionOptions.snapshotTime getSnapshotTime()"),
    _absent("MD5 of files", "arguments.disableMD5"),
    _absent("count, which PyMongo has removed", "count()"),
    _absent("mapReduce, which PyMongo has removed", "mapReduce()"),
    _absent(
        "enumeration that returns names of indexes or objects",
        "listIndexNames() listCollectionObjects() listDatabaseObjects()",
    ),
    _absent("waitQueueSize and waitQueueMultiple (CMAP-18)", "uriOptions.waitQueueSize uriOptions.waitQueueMultiple"),
    # Features that are being written; each line becomes void when its feature is there.
    _feature("authentication", "", lambda: _takes("username"), auth=True),
    _feature("load balancers", "", lambda: _takes("loadBalanced"), topology="load-balanced"),
    _feature("load balancers", "uriOptions.loadBalanced", lambda: _takes("loadBalanced")),
    _feature("bulk writes of clients", "clientBulkWrite()", lambda: hasattr(MongoClient, "bulk_write")),
    _feature("change streams", "createChangeStream()", lambda: hasattr(Collection, "watch")),
    _feature("GridFS", "bucket", lambda: find_spec("gmongo.gridfs") is not None),
    _feature(
        "transactions",
        "startTransaction() withTransaction() defaultTransactionOptions",
        lambda: hasattr(ClientSession, "start_transaction"),
    ),
    _feature("timeoutMS", "timeoutMS", lambda: hasattr(gmongo, "timeout") and _takes("timeoutMS")),
    _feature("appendMetadata", "appendMetadata()", lambda: hasattr(MongoClient, "append_metadata")),
)
"""The first rule that applies to a case gives the reason."""

_TRIALS: Mapping[str, Mapping[str, Any]] = {
    "username": {"username": "u", "password": "p"},
    "loadBalanced": {"loadBalanced": True},
    "timeoutMS": {"timeoutMS": 1000},
}


def _takes(option: str) -> bool:
    """Whether a client can be made with an option."""
    try:
        MongoClient("mongodb://127.0.0.1:1", connect=False, **_TRIALS[option]).close()
    except gmongo.errors.ConfigurationError:
        return False
    return True

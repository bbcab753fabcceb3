"""Rules for the official cases that do not pass, with the reasons.

If a rule has a condition, pytest skips its cases while the condition is true. The cases of a rule
without a condition run and must fail. If such a case passes, the rule is obsolete, and a test fails.
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
from gmongo.options.table import find_option
from tests.support.cases import rows
from tests.support.mongocryptd import analysis_reply

NOT_IN_GMONGO = "not in gmongo"
NOT_SIMULATED = "not in the simulation"
EXPECTED_FAILURE = "expected failure"
REQUIREMENT = "requirement"
SKIPPED_BY_TEST = "skipped by the test"

RULE_KINDS = (NOT_IN_GMONGO, NOT_SIMULATED, EXPECTED_FAILURE, REQUIREMENT, SKIPPED_BY_TEST)


@dataclass(frozen=True)
class CaseOnTopology:
    """A case and the topology on which the case runs.

    :param file_name: Name of the file, such as ``"find"``.
    :param description: Description of the case.
    :param topology: Topology of the deployment, such as ``"sharded"``.
    :param words: Keys in the case and its entities (``"timeoutMS"``), the keys with their parent key
        (``"collectionOptions.timeoutMS"``), and names of operations (``"find()"``).
    """

    file_name: str
    description: str
    topology: str
    words: frozenset[str]


@dataclass(frozen=True)
class Rule:
    """Rule that describes cases that do not pass.

    :param kind: One of the kinds in :data:`RULE_KINDS`.
    :param reason: Text that explains why the cases do not pass.
    :param words: The rule applies to cases that contain at least one of these words. An empty set
        permits any case.
    :param files: Pattern for the file names of the cases.
    :param cases: Pattern for the descriptions of the cases.
    :param topology: Pattern for the names of the topologies.
    :param skip_condition: Function that returns True if pytest must skip the cases. Without a
        function, the cases run and must fail.
    """

    kind: str
    reason: str
    words: frozenset[str] = frozenset()
    files: str = "*"
    cases: str = "*"
    topology: str = "*"
    skip_condition: Callable[[], bool] | None = None

    @property
    def text(self) -> str:
        """Kind and reason of the rule."""
        return f"{self.kind}: {self.reason}"

    def applies(self, case: CaseOnTopology) -> bool:
        """Return True if the rule matches a case on a topology."""
        return (
            (not self.words or bool(self.words & case.words))
            and fnmatchcase(case.file_name, self.files)
            and fnmatchcase(case.description, self.cases)
            and fnmatchcase(case.topology, self.topology)
        )


def rule_for(case: CaseOnTopology) -> Rule | None:
    """Return the rule that applies to a case, or None if the case must pass."""
    rule = next((rule for rule in RULES if rule.applies(case)), None)
    return rule if rule is None or rule.skip_condition is None or rule.skip_condition() else None


def words_of(*parts: Any) -> frozenset[str]:
    """Return the words in parts of a file, in the form that :class:`CaseOnTopology` describes."""
    words: set[str] = set()
    for part in parts:
        _add_words(words, part, "")
    return frozenset(words)


def _add_words(words: set[str], value: Any, parent: str) -> None:
    if isinstance(value, dict):
        if "object" in value and "name" in value:
            words.add(f"{value['name']}()")
        for key, inner in value.items():
            words |= {key, f"{parent}.{key}"}
            _add_words(words, inner, key)
    elif isinstance(value, list):
        for inner in value:
            _add_words(words, inner, parent)


def _missing_feature(reason: str, words: str, skip_condition: Callable[[], bool], **only: Any) -> Rule:
    return Rule(NOT_IN_GMONGO, reason, frozenset(words.split()), skip_condition=skip_condition, **only)


def _has_parameter(function: Any, parameter: str) -> bool:
    return parameter in signature(function).parameters


def _expected_failure(reason: str, files: str, cases: str = "*", topology: str = "*") -> Rule:
    return Rule(EXPECTED_FAILURE, reason, files=files, cases=cases, topology=topology)


_ENCRYPTION_WORDS = frozenset({"autoEncryptOpts", "clientEncryption"})


def _not_simulated(reason: str, files: str, cases: str = "*", skip_condition: Callable[[], bool] | None = None) -> Rule:
    return Rule(NOT_SIMULATED, reason, _ENCRYPTION_WORDS, files, cases, skip_condition=skip_condition)


@cache
def _encrypted_fields_are_ignored() -> bool:
    fields = {"fields": [{"path": "a", "bsonType": "int", "keyId": Binary(bytes(16), UUID_SUBTYPE)}]}
    encrypted = {"type": 1, "schema": {"db.c": fields}}
    reply = analysis_reply({"insert": "c", "documents": [{"a": 1}], "encryptionInformation": encrypted})
    return not reply["hasEncryptedPlaceholders"]


_WRAPPED_KEY_REASON = "the simulated key management service cannot decrypt the data key of a real service"
_QUERYABLE_REASON = "Queryable Encryption: the analysis of commands, and encrypted fields on servers"
_ANALYSIS_REASON = "the analysis of such commands or schemas by mongocryptd"

RULES: tuple[Rule, ...] = (
    *(_not_simulated(_WRAPPED_KEY_REASON, **row) for row in rows(__file__, "wrapped")),
    *(_not_simulated(_ANALYSIS_REASON, **row) for row in rows(__file__, "analysis")),
    *(
        _not_simulated(_QUERYABLE_REASON, **row, skip_condition=_encrypted_fields_are_ignored)
        for row in rows(__file__, "queryable")
    ),
    # Rules for cases of features that PyMongo or gmongo does not have.
    _missing_feature("rawData", "arguments.rawData", lambda: not _has_parameter(Collection.find_one, "raw_data")),
    _missing_feature(
        "the snapshot time of a session",
        "sessionOptions.snapshotTime getSnapshotTime()",
        lambda: not _has_parameter(SessionOptions.__init__, "snapshot_time"),
    ),
    _missing_feature(
        "MD5 of files",
        "arguments.disableMD5",
        lambda: not _has_parameter(GridFSBucket.__init__, "disable_md5"),
    ),
    _missing_feature("count, which PyMongo has removed", "count()", lambda: not hasattr(Collection, "count")),
    _missing_feature(
        "mapReduce, which PyMongo has removed",
        "mapReduce()",
        lambda: not hasattr(Collection, "map_reduce"),
    ),
    _missing_feature(
        "batchSize of list_indexes",
        "listIndexes()",
        lambda: not _has_parameter(Collection.list_indexes, "batch_size"),
        cases="listIndexes pins *",
    ),
    _missing_feature(
        "waitQueueSize and waitQueueMultiple (CMAP-18)",
        "uriOptions.waitQueueSize uriOptions.waitQueueMultiple",
        lambda: find_option("waitQueueSize") is None and find_option("waitQueueMultiple") is None,
    ),
    _expected_failure(
        "after a network error of a getMore behind a load balancer, the driver sends no killCursors (LB-53)",
        "close-cursors",
        "timeoutMS is refreshed for close",
        topology="load-balanced",
    ),
    _expected_failure(
        "the servers wait for 60 ms, and the timeout is 100 ms or missing",
        "runCursorCommand",
        "*ailable cursor *timeoutMS is refreshed for getMore* - failure",
    ),
    _expected_failure(
        "as in PyMongo, the operation raises the error of the command, and this error has no result",
        "bulkWrite",
        "* is never committed",
    ),
)
"""All rules. If several rules match a case, the first rule applies."""

"""The one table of what is not run, and why. Every reason begins with its class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

NOT_IN_GMONGO = "not in gmongo"
NOT_SIMULATED = "not in the simulation"
WRONG_HERE = "wrong here"
REQUIREMENT = "requirement"
BY_THE_TEST = "skipped by the test"

CLASSES = (NOT_IN_GMONGO, NOT_SIMULATED, WRONG_HERE, REQUIREMENT, BY_THE_TEST)


@dataclass(frozen=True)
class Use:
    """A case on a kind of deployment.

    :param file: suite and file, such as ``"crud/find"``.
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
    """Cases that are not run.

    :param kind: one of :data:`CLASSES`.
    :param reason: for people.
    :param words: it applies to cases with one of these; to all if there are none.
    :param files: and to these files only.
    :param cases: and to these cases only.
    :param topology: and to this topology only.
    """

    kind: str
    reason: str
    words: frozenset[str] = frozenset()
    files: str = "*"
    cases: str = "*"
    topology: str = "*"

    def applies(self, use: Use) -> bool:
        """Whether the case is one of these."""
        return (
            (not self.words or bool(self.words & use.words))
            and fnmatchcase(use.file, self.files)
            and fnmatchcase(use.case, self.cases)
            and fnmatchcase(use.topology, self.topology)
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


def _absent(reason: str, words: str, **only: Any) -> Rule:
    return Rule(NOT_IN_GMONGO, reason, frozenset(words.split()), **only)


def _contradicted(reason: str, files: str, cases: str = "*", topology: str = "*") -> Rule:
    return Rule(WRONG_HERE, reason, files=files, cases=cases, topology=topology)


def _unlike(reason: str, files: str, cases: str = "*") -> Rule:
    return Rule(NOT_SIMULATED, reason, files=f"client-side-encryption/{files}", cases=cases)


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
            ("types", "type=*"),
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
            ("badQueries", "an insert with*"),
            ("badQueries", "distinct with*"),
            ("validatorAndPartialFieldExpression", "*is an error"),
        )
    ),
    *(
        _unlike(_QUERYABLE, files, cases)
        for files, cases in (
            ("QE-Text-*", "*"),
            ("client-bulkWrite-qe", "*"),
            ("fle2v2-Rangev2-*", "*"),
            ("fle2v2-[BEFIMUv]*", "*"),
            ("fle2v2-Compact", "*"),
            ("fle2v2-Delete", "*"),
            ("fle2v2-CreateCollection", "encryptedFields are consulted*"),
        )
    ),
    Rule(NOT_SIMULATED, _QUERYABLE, files="*/poc-queryable-encryption"),
    # What PyMongo's API does not have either, or what gmongo leaves out.
    _absent("rawData", "arguments.rawData"),
    _absent("the snapshot time of a session", "sessionOptions.snapshotTime getSnapshotTime()"),
    _absent("MD5 of files", "arguments.disableMD5"),
    _absent("count, which PyMongo has removed", "count()"),
    _absent("mapReduce, which PyMongo has removed", "mapReduce()"),
    _absent(
        "enumeration that returns names of indexes or objects",
        "listIndexNames() listCollectionObjects() listDatabaseObjects()",
    ),
    _absent("batchSize of list_indexes", "", files="load-balancers/cursors", cases="listIndexes pins *"),
    _contradicted(
        "no killCursors after a getMore behind a load balancer failed in the network (LB-53)",
        "csot/close-cursors",
        "timeoutMS is refreshed for close",
        topology="load-balanced",
    ),
    _absent("waitQueueSize and waitQueueMultiple (CMAP-18)", "uriOptions.waitQueueSize uriOptions.waitQueueMultiple"),
)
"""The first rule that applies to a case gives the reason."""

"""Commands, parameters, stages and indexes inside and outside of API version 1.

The facts come from the MongoDB manual: "Stable API", and the section of that name on the page of each command. Other
sources are the command definitions in the public source of the server, up to MongoDB 8.0. A parameter in neither table
of a command is unknown. The tables include internal parameters, since the server does not refuse them.
"""

from __future__ import annotations

from typing import NamedTuple


class CommandFacts(NamedTuple):
    """Facts of a command of API version 1.

    :param inside: its parameters in API version 1, without the generic parameters.
    :param outside: its parameters outside of API version 1.
    :param since: the first MongoDB version with the command in API version 1.
    """

    inside: frozenset[str]
    outside: frozenset[str]
    since: str


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _facts(inside: str = "", outside: str = "", since: str = "5.0") -> CommandFacts:
    return CommandFacts(_names(inside), _names(outside), since)


# Generic parameters of all commands.
GENERIC = _names(
    "$db $clusterTime $readPreference apiVersion apiStrict apiDeprecationErrors autocommit comment lsid maxTimeMS "
    "readConcern startTransaction txnNumber writeConcern"
)

COMMANDS = {
    "abortTransaction": _facts("recoveryToken"),
    "aggregate": _facts(
        "pipeline allowDiskUse bypassDocumentValidation collation cursor exchange fromMongos hint let needsMerge "
        "stmtId",
        "$queryOptions collectionUUID encryptionInformation explain isMapReduceCommand querySettings runtimeConstants "
        "sampleId",
    ),
    "authenticate": _facts("mechanism user"),
    "bulkWrite": _facts("ops nsInfo bypassDocumentValidation cursor errorsOnly let ordered", since="8.0"),
    "collMod": _facts(
        "changeStreamPreAndPostImages expireAfterSeconds index pipeline timeseries validationAction validationLevel "
        "validator viewOn",
        "recordPreImages",
    ),
    "commitTransaction": _facts("recoveryToken"),
    "count": _facts("query collation fields hint limit skip", "collectionUUID queryOptions", "5.0.9"),
    "create": _facts(
        "changeStreamPreAndPostImages clusteredIndex collation encryptedFields expireAfterSeconds pipeline timeseries "
        "validationAction validationLevel validator viewOn",
        "autoIndexId capped flags idIndex indexOptionDefaults max recordPreImages size storageEngine temp",
    ),
    "createIndexes": _facts("indexes commitQuorum", "ignoreUnknownIndexOptions"),
    "delete": _facts("deletes let ordered", "runtimeConstants"),
    "drop": _facts(),
    "dropDatabase": _facts(),
    "dropIndexes": _facts("index"),
    "endSessions": _facts(),
    "explain": _facts("verbosity"),
    "find": _facts(
        "filter allowDiskUse allowPartialResults batchSize collation hint let limit projection singleBatch skip sort",
        "$_requestResumeToken $_resumeAfter $queryOptions allowSpeculativeMajorityRead awaitData collectionUUID "
        "encryptionInformation max min noCursorTimeout ntoreturn oplogReplay options querySettings readOnce returnKey "
        "runtimeConstants sampleId showRecordId tailable term",
    ),
    "findAndModify": _facts(
        "query arrayFilters bypassDocumentValidation collation fields hint let new remove sort update upsert",
        "runtimeConstants",
    ),
    "getMore": _facts("collection batchSize", "lastKnownCommittedOpTime term"),
    "hello": _facts(
        "client compression helloOk loadBalanced maxAwaitTimeMS saslSupportedMechs speculativeAuthenticate "
        "topologyVersion"
    ),
    "insert": _facts("documents bypassDocumentValidation ordered"),
    "killCursors": _facts("cursors"),
    "listCollections": _facts("authorizedCollections cursor filter nameOnly"),
    "listDatabases": _facts("authorizedDatabases filter nameOnly"),
    "listIndexes": _facts("cursor", "includeBuildUUIDs includeIndexBuildInfo"),
    "ping": _facts(),
    "refreshSessions": _facts(),
    "saslContinue": _facts("conversationId payload"),
    "saslStart": _facts("autoAuthorize mechanism options payload"),
    "testDeprecation": _facts(),  # only with enableTestCommands, for tests of DEPRECATED
    "update": _facts("updates bypassDocumentValidation let ordered", "runtimeConstants"),
}

# Names that the server accepts instead of other names.
ALIASES = {"findandmodify": "findAndModify", "deleteIndexes": "dropIndexes"}

# Commands in API version 1 that MongoDB may remove. So far, MongoDB has deprecated none of its own commands.
DEPRECATED = frozenset({"testDeprecation"})

# Aggregation stages outside of API version 1. $collStats is inside with the field count only.
STAGES_OUTSIDE = _names(
    "$backupCursor $currentOp $indexStats $listCatalog $listLocalSessions $listSampledQueries $listSearchIndexes "
    "$listSessions $operationMetrics $planCacheStats $querySettings $queryStats $rankFusion $search $searchBeta "
    "$searchMeta $shardedDataDistribution $vectorSearch"
)
COLL_STATS_INSIDE = frozenset({"count"})

# Values of {$meta: ...} outside of API version 1.
META_OUTSIDE = _names(
    "indexKey searchHighlights searchRootDocumentId searchScore searchScoreDetails searchSequenceToken textScore"
)

INDEX_TYPES_OUTSIDE = frozenset({"columnstore", "geoHaystack", "text"})
INDEX_OPTIONS_OUTSIDE = _names(
    "background bucketSize columnstoreProjection originalSpec prepareUnique sparse storageEngine"
)

# Replacements of commands.
ADVICE = {
    "collStats": "use aggregate with {$collStats: {count: {}}} if the number of documents is all you need",
    "distinct": "use aggregate with $group",
    "isMaster": "use hello",
    "ismaster": "use hello",
    "mapReduce": "use aggregate",
    "mapreduce": "use aggregate",
}

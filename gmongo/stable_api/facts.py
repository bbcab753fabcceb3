"""Tables of the commands, parameters, stages and indexes inside and outside of API version 1.

Sources: the page "Stable API" and the pages of the commands in the MongoDB manual, and the server's
public source code up to MongoDB 8.0. A parameter that is neither `inside` nor `outside` is unknown.
The server accepts internal parameters from clients, so the tables include internal parameters.
"""

from __future__ import annotations

from typing import NamedTuple


class CommandFacts(NamedTuple):
    """Parameters of a command inside and outside of API version 1."""

    inside: frozenset[str]
    outside: frozenset[str]
    since: str  # first MongoDB version in which API version 1 contains the command


def _name_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _command_facts(inside: str = "", outside: str = "", since: str = "5.0") -> CommandFacts:
    return CommandFacts(_name_set(inside), _name_set(outside), since)


# Parameters that every command may have.
GENERIC_PARAMETERS = _name_set(
    "$db $clusterTime $readPreference apiVersion apiStrict apiDeprecationErrors autocommit comment lsid maxTimeMS "
    "readConcern startTransaction txnNumber writeConcern"
)

COMMANDS = {
    "abortTransaction": _command_facts("recoveryToken"),
    "aggregate": _command_facts(
        "pipeline allowDiskUse bypassDocumentValidation collation cursor exchange fromMongos hint let needsMerge "
        "stmtId",
        "$queryOptions collectionUUID encryptionInformation explain isMapReduceCommand querySettings runtimeConstants "
        "sampleId",
    ),
    "authenticate": _command_facts("mechanism user"),
    "bulkWrite": _command_facts("ops nsInfo bypassDocumentValidation cursor errorsOnly let ordered", since="8.0"),
    "collMod": _command_facts(
        "changeStreamPreAndPostImages expireAfterSeconds index pipeline timeseries validationAction validationLevel "
        "validator viewOn",
        "recordPreImages",
    ),
    "commitTransaction": _command_facts("recoveryToken"),
    "count": _command_facts("query collation fields hint limit skip", "collectionUUID queryOptions", "5.0.9"),
    "create": _command_facts(
        "changeStreamPreAndPostImages clusteredIndex collation encryptedFields expireAfterSeconds pipeline timeseries "
        "validationAction validationLevel validator viewOn",
        "autoIndexId capped flags idIndex indexOptionDefaults max recordPreImages size storageEngine temp",
    ),
    "createIndexes": _command_facts("indexes commitQuorum", "ignoreUnknownIndexOptions"),
    "delete": _command_facts("deletes let ordered", "runtimeConstants"),
    "drop": _command_facts(),
    "dropDatabase": _command_facts(),
    "dropIndexes": _command_facts("index"),
    "endSessions": _command_facts(),
    "explain": _command_facts("verbosity"),
    "find": _command_facts(
        "filter allowDiskUse allowPartialResults batchSize collation hint let limit projection singleBatch skip sort",
        "$_requestResumeToken $_resumeAfter $queryOptions allowSpeculativeMajorityRead awaitData collectionUUID "
        "encryptionInformation max min noCursorTimeout ntoreturn oplogReplay options querySettings readOnce returnKey "
        "runtimeConstants sampleId showRecordId tailable term",
    ),
    "findAndModify": _command_facts(
        "query arrayFilters bypassDocumentValidation collation fields hint let new remove sort update upsert",
        "runtimeConstants",
    ),
    "getMore": _command_facts("collection batchSize", "lastKnownCommittedOpTime term"),
    "hello": _command_facts(
        "client compression helloOk loadBalanced maxAwaitTimeMS saslSupportedMechs speculativeAuthenticate "
        "topologyVersion"
    ),
    "insert": _command_facts("documents bypassDocumentValidation ordered"),
    "killCursors": _command_facts("cursors"),
    "listCollections": _command_facts("authorizedCollections cursor filter nameOnly"),
    "listDatabases": _command_facts("authorizedDatabases filter nameOnly"),
    "listIndexes": _command_facts("cursor", "includeBuildUUIDs includeIndexBuildInfo"),
    "ping": _command_facts(),
    "refreshSessions": _command_facts(),
    "saslContinue": _command_facts("conversationId payload"),
    "saslStart": _command_facts("autoAuthorize mechanism options payload"),
    "testDeprecation": _command_facts(),  # deprecated. Servers have this command only with enableTestCommands
    "update": _command_facts("updates bypassDocumentValidation let ordered", "runtimeConstants"),
}

# Alias of a command that the server accepts -> name of the command.
ALIASES = {"findandmodify": "findAndModify", "deleteIndexes": "dropIndexes"}

# Deprecated commands of API version 1. MongoDB has deprecated only one command, which is for tests.
DEPRECATED_COMMANDS = frozenset({"testDeprecation"})

# Aggregation stages outside of API version 1. The stage $collStats is part of API version 1 only with
# the field count.
STAGES_OUTSIDE = _name_set(
    "$backupCursor $currentOp $indexStats $listCatalog $listLocalSessions $listSampledQueries $listSearchIndexes "
    "$listSessions $operationMetrics $planCacheStats $querySettings $queryStats $rankFusion $search $searchBeta "
    "$searchMeta $shardedDataDistribution $vectorSearch"
)
COLL_STATS_INSIDE = frozenset({"count"})

# Values of {$meta: ...} outside of API version 1.
META_OUTSIDE = _name_set(
    "indexKey searchHighlights searchRootDocumentId searchScore searchScoreDetails searchSequenceToken textScore"
)

INDEX_TYPES_OUTSIDE = frozenset({"columnstore", "geoHaystack", "text"})
INDEX_OPTIONS_OUTSIDE = _name_set(
    "background bucketSize columnstoreProjection originalSpec prepareUnique sparse storageEngine"
)

# Command outside of API version 1 -> advice on a replacement.
ADVICE = {
    "collStats": "use aggregate with {$collStats: {count: {}}} if the number of documents is all you need",
    "distinct": "use aggregate with $group",
    "isMaster": "use hello",
    "ismaster": "use hello",
    "mapReduce": "use aggregate",
    "mapreduce": "use aggregate",
}

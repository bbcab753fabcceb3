"""The constructs that the simulation does not support, and the engine that supports each construct."""

from __future__ import annotations

from collections.abc import Mapping

from gmongo.testing.command import CommandError

MONGOD = 'EmbeddedDatabase(engine="mongod")'
ATLAS = "MongoDB Atlas"


def _assign_engine(engine: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), engine)


STAGES: Mapping[str, str] = {
    **_assign_engine(
        MONGOD,
        """$bucket $bucketAuto $densify $fill $geoNear $graphLookup $listClusterCatalog $listSampledQueries
        $listSessions $planCacheStats $querySettings $queryStats $redact $setWindowFields $shardedDataDistribution""",
    ),
    **_assign_engine(ATLAS, "$rankFusion $score $scoreFusion $search $searchMeta $vectorSearch"),
}
QUERY_OPERATORS: Mapping[str, str] = _assign_engine(
    MONGOD, "$alwaysFalse $alwaysTrue $geoIntersects $geoNear $geoWithin $near $nearSphere $sampleRate $where $within"
)
EXPRESSIONS: Mapping[str, str] = {
    **_assign_engine(
        MONGOD,
        """$accumulator $acos $acosh $allElementsTrue $arrayToObject $asin $asinh $atan $atan2 $atanh
        $binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize $cos $cosh $createObjectId $currentDate $dateAdd
        $dateDiff $dateFromParts $dateSubtract $dateToParts $degreesToRadians $encStrContains $encStrEndsWith
        $encStrNormalizedEq $encStrStartsWith $exp $firstN $function $indexOfArray $indexOfBytes $lastN $ln
        $log $log10 $maxN $median $minN $objectToArray $percentile $pow $radiansToDegrees $range $reduce
        $regexFind $regexFindAll $replaceOne $reverseArray $setDifference $setEquals $setUnion $sin $sinh
        $sortArray $sqrt $stdDevPop $stdDevSamp $strLenBytes $strcasecmp $substr $substrBytes $tan $tanh
        $toHashedIndexKey $toUUID $tsIncrement $tsSecond $zip""",
    ),
    **_assign_engine(ATLAS, "$similarityCosine $similarityDotProduct $similarityEuclidean"),
}
ACCUMULATORS: Mapping[str, str] = _assign_engine(
    MONGOD,
    """$accumulator $bottom $bottomN $concatArrays $firstN $lastN $maxN $median $minN $percentile $setUnion $stdDevPop
    $stdDevSamp $top $topN""",
)
UPDATE_OPERATORS: Mapping[str, str] = {"$bit": MONGOD}
_OTHERS = (
    "internal $changeStream options", "$collStats of latencies", "$convert of binary data",
    "$dateToString with some formats", "$dateTrunc with a bin of several units", "$lookup into an existing field",
    "$meta", "$text in a pipeline", "a change event of $[] or $[name]", "a change event of a pipeline inside a field",
    "a change stream stage in a pipeline that does not begin with $changeStream", "a collection of the server",
    "a date beyond the years 1 to 9999", "a date in another format than ISO 8601", "a document in a geospatial index",
    "some fail points", "a join without a collection name", "a kill of sessions by user or pattern",
    "a large event in parts", "a malformed part of a command", "a sort by metadata", "a sort with returnKey",
    "a text search beyond English words", "a time series", "a unique text or geospatial index",
    "a variable of the server", "a view made in a transaction", "a view whose name is in a view", "a wildcard index",
    "a write concern of tags", "an error of an expression", "an index build beside a transaction",
    "some collations", "another command", "bits of decimals", "disambiguatedPaths of names with dots",
    "explain of some commands", "some keywords of $jsonSchema", "some options of $merge",
    "some options of an index", "some options of collMod", "some options of create",
    "renameCollection to another database",
    "the details of a validation error", "time zones without data", "validate with repair or metadata"
)  # fmt: skip
UNSUPPORTED: Mapping[str, str] = {
    **STAGES, **QUERY_OPERATORS, **EXPRESSIONS, **ACCUMULATORS, **UPDATE_OPERATORS, **dict.fromkeys(_OTHERS, MONGOD)
}  # fmt: skip
"""The engines by construct. The engine supports the construct, but the simulation does not."""


def not_supported(construct: str, detail: str = "") -> CommandError:
    """Return the error of a construct in `UNSUPPORTED`. `detail` is the part of the command with the construct."""
    part = f" ({detail})" if detail else ""
    message = f"the simulated deployment does not support {construct}{part}; {UNSUPPORTED[construct]} supports it"
    return CommandError(115, "CommandNotSupported", message)

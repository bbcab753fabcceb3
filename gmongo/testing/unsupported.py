"""The unsupported constructs of the simulation, and the engine that supports each construct."""

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
_OTHER_CONSTRUCTS = (
    "$changeStreamSplitLargeEvent of an event above 16 MB", "$collStats with latencyStats or queryExecStats",
    "$convert of binary data", "$dateToString with unsupported format specifiers", "$dateTrunc with a binSize above 1",
    "$lookup into an existing field", "$meta", "$text in a pipeline", "a bit test of a Decimal128",
    "a change event of an update pipeline that changes part of a field",
    "a change event of an update with $[] or $[name]",
    "a change stream stage in a pipeline that does not begin with $changeStream",
    "a collation with an unsupported option or letter", "a date beyond the years 1 to 9999",
    "a date in a format other than ISO 8601", "a document in a geospatial index",
    "a join with a source other than a collection of the same database", "a kill of sessions by user or pattern",
    "a malformed or failing expression", "a malformed part of a command", "a sort by metadata", "a sort with returnKey",
    "a system collection", "a system variable such as $$USER_ROLES", "a text search beyond plain English words",
    "a time series", "a time zone offset of a day or more", "a unique text or geospatial index",
    "a validation error beyond one condition on one value", "a view made in a transaction",
    "a view whose name occurs in the definition of a view", "a wildcard index", "a write concern with tags",
    "an index build during a transaction on the collection", "an internal option of $changeStream",
    "an unimplemented administrative command", "an unimplemented fail point", "an unsupported keyword of $jsonSchema",
    "an unsupported option of $merge", "an unsupported option of an index", "an unsupported option of collMod",
    "an unsupported option of create", "disambiguatedPaths of field names with dots",
    "explain of an unsupported command or option", "named time zones if no time zone database is installed",
    "renameCollection to another database", "validate with repair or metadata"
)  # fmt: skip
UNSUPPORTED: Mapping[str, str] = {
    **STAGES, **QUERY_OPERATORS, **EXPRESSIONS, **ACCUMULATORS, **UPDATE_OPERATORS,
    **dict.fromkeys(_OTHER_CONSTRUCTS, MONGOD)
}  # fmt: skip
"""The engines by construct. The engine supports the construct, but the simulation does not."""


def not_supported(construct: str, detail: str = "") -> CommandError:
    """Return the error of a construct in `UNSUPPORTED`. `detail` describes the unsupported part of the command."""
    part = f" ({detail})" if detail else ""
    message = f"the simulated deployment does not support {construct}{part}; {UNSUPPORTED[construct]} supports it"
    return CommandError(115, "CommandNotSupported", message)

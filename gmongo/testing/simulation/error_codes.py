"""The server's error codes and their names, and the kinds of errors that labels and clients' reactions go by."""

from __future__ import annotations

from gmongo.testing.command import CommandError

NAMES = {
    1: "InternalError",
    2: "BadValue",
    4: "NoSuchKey",
    6: "HostUnreachable",
    7: "HostNotFound",
    8: "UnknownError",
    9: "FailedToParse",
    11: "UserNotFound",
    13: "Unauthorized",
    14: "TypeMismatch",
    17: "ProtocolError",
    18: "AuthenticationFailed",
    20: "IllegalOperation",
    22: "InvalidBSON",
    24: "LockTimeout",
    26: "NamespaceNotFound",
    27: "IndexNotFound",
    31: "RoleNotFound",
    40: "ConflictingUpdateOperators",
    43: "CursorNotFound",
    48: "NamespaceExists",
    50: "MaxTimeMSExpired",
    51: "ManualInterventionRequired",
    59: "CommandNotFound",
    61: "ShardKeyNotFound",
    63: "StaleShardVersion",
    64: "WriteConcernTimeout",
    66: "ImmutableField",
    67: "CannotCreateIndex",
    68: "IndexAlreadyExists",
    72: "InvalidOptions",
    73: "InvalidNamespace",
    79: "UnknownReplWriteConcern",
    80: "WriteConcernFailed",
    85: "IndexOptionsConflict",
    86: "IndexKeySpecsConflict",
    89: "NetworkTimeout",
    91: "ShutdownInProgress",
    94: "NotYetInitialized",
    95: "OperationFailed",
    96: "UnknownFeatureCompatibilityVersion",
    100: "UnsatisfiableWriteConcern",
    112: "WriteConflict",
    115: "CommandNotSupported",
    121: "DocumentValidationFailure",
    123: "NotAReplicaSet",
    133: "FailedToSatisfyReadPreference",
    134: "ReadConcernMajorityNotAvailableYet",
    136: "CappedPositionLost",
    150: "StaleEpoch",
    166: "CommandNotSupportedOnView",
    175: "QueryPlanKilled",
    189: "PrimarySteppedDown",
    211: "KeyNotFound",
    216: "ElectionInProgress",
    222: "CloseChangeStream",
    225: "TransactionTooOld",
    226: "AtomicityFailure",
    234: "RetryChangeStream",
    237: "CursorKilled",
    238: "NotImplemented",
    246: "SnapshotUnavailable",
    251: "NoSuchTransaction",
    256: "TransactionCommitted",
    257: "TransactionTooLarge",
    262: "ExceededTimeLimit",
    263: "OperationNotSupportedInTransaction",
    267: "PreparedTransactionInProgress",
    280: "ChangeStreamFatalError",
    286: "ChangeStreamHistoryLost",
    290: "TransactionExceededLifetimeLimitSeconds",
    314: "ObjectIsBusy",
    317: "ConnectionPoolExpired",
    322: "APIVersionError",
    323: "APIStrictError",
    324: "APIDeprecationError",
    338: "APIMismatchError",
    352: "UnsupportedOpQueryCommand",
    354: "LoadBalancerSupportMismatch",
    358: "InternalTransactionNotSupported",
    365: "TemporarilyUnavailable",
    384: "ConnectionError",
    391: "ReauthenticationRequired",
    462: "IngressRequestRateLimitExceeded",
    9001: "SocketException",
    10003: "CannotGrowDocumentInCappedNamespace",
    10107: "NotWritablePrimary",
    10334: "BSONObjectTooLarge",
    11000: "DuplicateKey",
    11600: "InterruptedAtShutdown",
    11601: "Interrupted",
    11602: "InterruptedDueToReplStateChange",
    13388: "StaleConfig",
    13435: "NotPrimaryNoSecondaryOk",
    13436: "NotPrimaryOrSecondary",
    14031: "OutOfDiskSpace",
    17280: "KeyTooLong",
}

# A write or a commit that failed with one of these may be tried again.
RETRYABLE = frozenset({6, 7, 89, 91, 134, 189, 262, 317, 365, 9001, 10107, 11600, 11602, 13435, 13436})
# A member of a replica set adds its topologyVersion to replies with these codes.
NOT_PRIMARY = frozenset({189, 10107, 11602, 13435, 13436})
# In a transaction, these mean that the whole of it may be tried again.
TRANSIENT = frozenset({24, 112, 246, 267, 13388})
RESUMABLE_CHANGE_STREAM = frozenset(
    {6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436}
)


def name_of(code: int) -> str:
    """The name of a code; the server calls one that it has no name for ``Location`` and the number."""
    return NAMES.get(code, f"Location{code}")


def error(code: int, message: str) -> CommandError:
    """An error with the name that belongs to its code."""
    return CommandError(code, name_of(code), message)

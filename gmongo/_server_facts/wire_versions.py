"""Wire versions: the range that the driver supports, and for each feature the first version.

The driver specifications' "Server Wire Version and Feature List" maps releases to wire versions.
"""

from __future__ import annotations

# MongoDB 4.2 to 9.0.
MIN_SUPPORTED = 8
MAX_SUPPORTED = 29

# MongoDB 3.4. Max Staleness specification.
MAX_STALENESS = 5
# MongoDB 3.6. Retryable Reads specification.
RETRYABLE_READS = 6
# MongoDB 4.2. SDAM specification, "Not writable primary and node is recovering": a primary that steps
# down keeps its connections open.
CONNECTIONS_SURVIVE_STEP_DOWN = 8
# MongoDB 4.4. Retryable Writes and Change Streams specifications: the server adds the labels
# RetryableWriteError and ResumableChangeStreamError to its errors.
ERROR_LABELS = 9
# MongoDB 4.4. Find, getMore and killCursors commands specification: a getMore supports ``comment``.
GET_MORE_COMMENT = 9
# MongoDB 4.4. CRUD specification: a delete and a findAndModify support ``hint``. Older servers reject
# the option.
HINT_OF_ANY_WRITE = 9
# MongoDB 4.4. CRUD specification: writes support ``comment``.
WRITE_COMMENT = 9
# MongoDB 5.0. CRUD specification: an update, a delete and a findAndModify support ``let``.
LET_OF_WRITES = 13
# MongoDB 5.0. Snapshot Sessions specification.
SNAPSHOT_READS = 13
# MongoDB 5.0. CRUD specification: a secondary forwards the output of $out and $merge to the primary.
AGGREGATE_WRITES_ON_SECONDARY = 13
# MongoDB 6.0. SDAM specification, "updateRSFromPrimary": the newer primary has the larger election
# ID. If the IDs are equal, the newer primary has the larger set version.
ELECTION_ID_FIRST = 17
# MongoDB 7.0. Client Side Encryption specification, "Create Collection Helper".
QUERYABLE_ENCRYPTION = 21
# MongoDB 7.1. SERVER-57297: a mongos streams the batches of a getMore with exhaustAllowed.
EXHAUST_ON_MONGOS = 22
# MongoDB 8.0. CRUD specification: an update supports ``sort``.
SORT_OF_UPDATES = 25
# MongoDB 8.0. Bulk Write specification: the server supports the command ``bulkWrite``.
CLIENT_BULK_WRITE = 25

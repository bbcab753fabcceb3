"""Size limits of documents and messages. A server may announce its own limits in its hello reply."""

from __future__ import annotations

# Limits of a server whose hello reply contains no limits. Source: MongoDB documentation of ``hello``.
MAX_BSON_SIZE = 16 * 1024 * 1024
MAX_MESSAGE_SIZE = 48_000_000
MAX_WRITE_BATCH_SIZE = 1000  # limit before MongoDB 3.6
USUAL_WRITE_BATCH_SIZE = 100_000  # limit since MongoDB 3.6

# A command or a reply may exceed MAX_BSON_SIZE by up to this number of bytes. Source:
# ``BSONObjMaxInternalSize`` and ``MaxMessageSizeBytes`` in the source code of the server.
COMMAND_OVERHEAD = 16 * 1024
# Number of bytes that the driver reserves for the common fields of a ``bulkWrite`` command. Source:
# ``maxMessageSizeBytes`` in the Bulk Write specification.
BULK_WRITE_OVERHEAD = 1000

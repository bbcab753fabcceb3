"""Size limits of documents and messages. A server may send other limits in its hello reply."""

from __future__ import annotations

# Documentation of ``hello``: limits of a server that sends none.
MAX_BSON_SIZE = 16 * 1024 * 1024
MAX_MESSAGE_SIZE = 48_000_000
MAX_WRITE_BATCH_SIZE = 1000  # before MongoDB 3.6
USUAL_WRITE_BATCH_SIZE = 100_000  # since MongoDB 3.6

# The server's ``BSONObjMaxInternalSize`` and ``MaxMessageSizeBytes``: a command and its reply may exceed the largest
# document by this number of bytes.
COMMAND_OVERHEAD = 16 * 1024
# Bulk Write specification, on ``maxMessageSizeBytes``: reserved bytes for the common fields of the command.
BULK_WRITE_OVERHEAD = 1000

"""What documents and messages may hold. A server says its own limits in its hello."""

from __future__ import annotations

# Documentation of ``hello``: what a server that does not say otherwise has.
MAX_BSON_SIZE = 16 * 1024 * 1024
MAX_MESSAGE_SIZE = 48_000_000
MAX_WRITE_BATCH_SIZE = 1000  # of servers before MongoDB 3.6
USUAL_WRITE_BATCH_SIZE = 100_000  # of servers since then

# The server's ``BSONObjMaxInternalSize`` and ``MaxMessageSizeBytes``: how far a command and its reply may go beyond the
# largest document.
COMMAND_OVERHEAD = 16 * 1024
# Bulk Write specification, on ``maxMessageSizeBytes``: what a message holds besides what is particular to the
# command.
BULK_WRITE_OVERHEAD = 1000

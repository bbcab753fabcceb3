"""The commands for search indexes, which fail, because only MongoDB Atlas has search indexes."""

from __future__ import annotations

from gmongo.testing.command import CommandError, error
from gmongo.testing.store.context import Context
from gmongo.testing.store.data import Document


def refuse_search(name: str) -> CommandError:
    """Return the error with which a server without Atlas Search replies to a command or stage."""
    return error(31082, f"{name} is not allowed: using Atlas Search Database Commands and the $listSearchIndexes "
                 "aggregation stage requires additional configuration. Please connect to Atlas or an AtlasCLI local "
                 "deployment to enable.")  # fmt: skip


def search_index_command(context: Context) -> Document:
    """Execute a command for search indexes, which always fails."""
    raise refuse_search(context.request.name)

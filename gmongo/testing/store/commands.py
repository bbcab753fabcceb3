"""The commands that the store executes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gmongo.testing.store import catalog, coll_mod, diagnostics, end_transactions, indexes, reads, writes
from gmongo.testing.store.aggregation import aggregate, refuse_search_index_command
from gmongo.testing.store.bulk import bulk_write
from gmongo.testing.store.context import CommandContext
from gmongo.testing.store.data import Document
from gmongo.testing.store.explaining import describe_plan, explain
from gmongo.testing.store.find_and_modify import find_and_modify
from gmongo.testing.store.replies import get_more, kill_cursors


@dataclass(frozen=True)
class Command:
    """A command that the store executes."""

    name: str  # the name of the command
    run: Callable[[CommandContext], Document]  # the function that executes the command
    in_transactions: bool = False  # True if a transaction accepts the command
    is_retryable: bool = False  # True if the command can be a retryable write, which has a transaction number
    accepts_read_concern: bool = False  # True if the read concern may be `majority` or `linearizable`
    accepts_snapshot: bool = False  # True if the command accepts `snapshot` outside of transactions


def _aggregate(context: CommandContext) -> Document:
    if context.body.get("explain"):
        body = {name: value for name, value in context.body.items() if name not in ("explain", "cursor")}
        return describe_plan(context, body, "queryPlanner")
    return aggregate(context)


_COMMANDS = (
    Command("abortTransaction", end_transactions.refuse_outside_transaction, in_transactions=True),
    Command("aggregate", _aggregate, in_transactions=True, accepts_read_concern=True, accepts_snapshot=True),
    Command("bulkWrite", bulk_write, in_transactions=True, is_retryable=True),
    Command("collMod", coll_mod.modify_collection),
    Command("collStats", diagnostics.compute_collection_stats),
    Command("commitTransaction", end_transactions.refuse_outside_transaction, in_transactions=True),
    Command("count", reads.count, accepts_read_concern=True),
    Command("create", catalog.create, in_transactions=True),
    Command("createIndexes", indexes.create_indexes, in_transactions=True),
    Command("createSearchIndexes", refuse_search_index_command),
    Command("dbStats", diagnostics.compute_database_stats),
    Command("delete", writes.delete, in_transactions=True, is_retryable=True),
    Command("distinct", reads.distinct, in_transactions=True, accepts_read_concern=True, accepts_snapshot=True),
    Command("drop", catalog.drop),
    Command("dropDatabase", catalog.drop_database),
    Command("dropIndexes", indexes.drop_indexes),
    Command("dropSearchIndex", refuse_search_index_command),
    Command("endSessions", end_transactions.end_sessions),
    Command("explain", explain, accepts_read_concern=True),
    Command("find", reads.find, in_transactions=True, accepts_read_concern=True, accepts_snapshot=True),
    Command("findAndModify", find_and_modify, in_transactions=True, is_retryable=True),
    Command("getMore", get_more, in_transactions=True, accepts_read_concern=True, accepts_snapshot=True),
    Command("insert", writes.insert, in_transactions=True, is_retryable=True),
    Command("killAllSessions", end_transactions.kill_all_sessions),
    Command("killAllSessionsByPattern", end_transactions.kill_all_sessions),
    Command("killCursors", kill_cursors, in_transactions=True, accepts_read_concern=True, accepts_snapshot=True),
    Command("killSessions", end_transactions.kill_sessions),
    Command("listCollections", catalog.list_collections),
    Command("listDatabases", catalog.list_databases),
    Command("listIndexes", indexes.list_indexes),
    Command("listSearchIndexes", refuse_search_index_command),
    Command("refreshSessions", end_transactions.refresh_sessions),
    Command("renameCollection", catalog.rename_collection),
    Command("startSession", end_transactions.start_session),
    Command("update", writes.update, in_transactions=True, is_retryable=True),
    Command("updateSearchIndex", refuse_search_index_command),
    Command("validate", diagnostics.validate),
)

COMMANDS: Mapping[str, Command] = {command.name: command for command in _COMMANDS}

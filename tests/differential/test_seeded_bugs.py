"""The judge is awake: a bug put into gmongo shows in the calls of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bson.codec_options import DEFAULT_CODEC_OPTIONS

from gmongo import collection, command_cursor, cursor, database, mongo_client
from gmongo._server_facts import codes
from gmongo.client_options import ClientOptions
from gmongo.client_session import ClientSession
from gmongo.engines import bulk
from gmongo.errors import NotPrimaryError
from gmongo.execution import classify, executor
from gmongo.gridfs import grid_in, storage
from gmongo.operations import write
from gmongo.operations.aggregate import Aggregate
from gmongo.operations.keys import index_document
from gmongo.operations.run_command import Explain, WriteCommand

from . import scene as scenes
from .differences import explained
from .scene import GMONGO, PYMONGO, Scene, calls
from .servers import on_the_simulation

Seed = Callable[[pytest.MonkeyPatch], None]

_CALLS = [call for path in sorted((Path(__file__).parent / "calls").glob("*.txt")) for call in calls(path)]
SEEDS: dict[str, tuple[Seed, str]] = {}


def seeded(call: str) -> Callable[[Seed], Seed]:
    """A bug, and a piece of the calls that have to show it."""

    def add(seed: Seed) -> Seed:
        SEEDS[seed.__name__] = seed, call
        return seed

    return add


def _without_codec_options(patch: pytest.MonkeyPatch, kind: type) -> None:
    made = kind.__init__  # type: ignore[misc]

    def make(self: Any, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        self.context = self.context.replace(codec_options=DEFAULT_CODEC_OPTIONS)
        self.decoding = DEFAULT_CODEC_OPTIONS

    patch.setattr(kind, "__init__", make)


@seeded('InsertOne({"_id": 12}), InsertOne({"_id": 11}), DeleteOne({"_id": 11})])')
def ordered_unacknowledged_writes_go_on_after_an_error(patch: pytest.MonkeyPatch) -> None:
    execute = bulk.Bulk.execute

    def without_asking(self: Any, *args: Any) -> Any:
        self._asks = self._acknowledged
        return execute(self, *args)

    patch.setattr(bulk.Bulk, "execute", without_asking)


@seeded('c.count_documents({"_id": U}), c.find_one')
def aggregations_ignore_codec_options(patch: pytest.MonkeyPatch) -> None:
    _without_codec_options(patch, Aggregate)


@seeded('c.find({"_id": U}).explain()')
def explain_ignores_codec_options(patch: pytest.MonkeyPatch) -> None:
    _without_codec_options(patch, Explain)


@seeded('create_collection("v", validator={"a": U})')
def administration_ignores_codec_options(patch: pytest.MonkeyPatch) -> None:
    _without_codec_options(patch, WriteCommand)


@seeded("upsert=True).upserted_id, c.update_many")
def replies_to_writes_ignore_codec_options(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(write, "reply_options", lambda options: DEFAULT_CODEC_OPTIONS)


@seeded("bucket.upload_from_stream_with_id(U")
def chunks_ignore_codec_options(patch: pytest.MonkeyPatch) -> None:
    made = storage.Storage.__init__

    def make(self: Any, root: Any) -> None:
        made(self, root)
        self.chunks = self.chunks.with_options(codec_options=DEFAULT_CODEC_OPTIONS)

    patch.setattr(storage.Storage, "__init__", make)


@seeded("bool(client), bool(client) is True")
def a_client_has_no_truth(patch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> bool:
        raise NotImplementedError

    patch.setattr(mongo_client.MongoClient, "__bool__", refuse, raising=False)


@seeded('s.with_transaction(lambda s: db.create_collection("new", session=s))')
def collections_are_listed_in_a_transaction(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(database, "checked_session", lambda session: SimpleNamespace(in_transaction=False))


@seeded('Client(retryWrites=False).differential.things.insert_one({"_id": 70})')
def a_write_concern_error_looks_like_a_failed_write(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        classify, "_concern_error", lambda reply: NotPrimaryError("not primary", {**reply["writeConcernError"]})
    )


@seeded("cursor = capped.find(cursor_type=CursorType.TAILABLE)")
def a_tailable_cursor_that_falls_behind_raises(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(codes, "CURSOR_GONE", frozenset({43}))


@seeded('c.aggregate([{"$changeStream": {}}], maxAwaitTimeMS=1).to_list()')
def a_list_of_changes_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scenes, "_PATIENCE", 1.0)
    patch.setattr(command_cursor.CommandCursor, "to_list", lambda self, length=None: list(self))


@seeded('{"_id": 51, "a": "x" * 16777216}, {"_id": 52}], ordered=False')
def a_document_that_is_too_large_fails_its_neighbours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(write.Statements, "has_reply", property(lambda self: False, lambda self, value: None))


@seeded("o = client.options")
def options_lack_what_applications_ask_for(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(ClientOptions, "max_adaptive_retries")


@seeded('m.MongoClient("a:1", connect=False) == m.MongoClient("a:1", maxPoolSize=5')
def clients_of_one_deployment_differ(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mongo_client.MongoClient, "eq_props", lambda self: repr(self._options.merged))


@seeded('HOST = "mine"')
def the_default_host_is_fixed(patch: pytest.MonkeyPatch) -> None:
    made = ClientOptions.__init__
    patch.setattr(
        ClientOptions, "__init__", lambda self, host, port, keywords: made(self, "localhost", 27017, keywords)
    )


@seeded('Client(username="", password="")')
def an_empty_name_asks_for_authentication(patch: pytest.MonkeyPatch) -> None:
    from gmongo import client_options
    from gmongo.errors import ConfigurationError

    def credential_of(options: Any, username: Any, password: Any, database: Any) -> Any:
        if username is not None:
            raise ConfigurationError("a username must not be empty")

    patch.setattr(client_options, "credential_of", credential_of)


@seeded('c.find(min={"_id": 2}, hint={"_id": 1})')
def bounds_are_lists_only(patch: pytest.MonkeyPatch) -> None:
    def bound(name: str, spec: Any) -> Any:
        if isinstance(spec, Mapping):
            raise TypeError(name)
        return dict(spec)

    patch.setattr(cursor, "_bound", bound)


@seeded('c.find(sort="x")')
def a_bare_name_sorts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cursor, "sort_document", index_document)


@seeded("c.find(cursor_type=CursorType.EXHAUST, limit=5)")
def exhaust_cursors_have_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cursor.Cursor, "_check_exhaust", lambda self: None)


@seeded('c.aggregate([], aggregate="other")')
def an_aggregation_can_be_sent_elsewhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(collection, "_NO_OPTIONS_OF_AGGREGATE", ())


@seeded("with client.start_session() as s, s.bind():\n    other.differential")
def another_clients_operations_run_unbound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(executor, "bound_session", lambda self: None)


@seeded("copy.copy(s)")
def sessions_can_be_copied(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(ClientSession, "__copy__")


@seeded("documents=[{}], write_concern=WriteConcern(w=1)")
def a_command_encodes_its_write_concern(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(database, "WriteConcern", ())


@seeded('fs.put(b"x", name="f", thumb=None)')
def gridfs_renames_fields(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(grid_in, "_KEYWORDS", {**grid_in._KEYWORDS, "name": "filename"})


@seeded("client.drop_database(each)")
def any_database_name_is_sent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(database, "_check_name", lambda name: None)


@seeded('$orderby": {"_id": -1}')
def modifiers_of_queries_are_sent_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cursor, "without_modifiers", lambda filter, fields: (filter, fields))


@seeded('RawBSONDocument(bson.encode({"_id": 31}))]).inserted_ids')
def raw_documents_have_ids(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(collection, "RawBSONDocument", ())


@pytest.mark.parametrize("name", SEEDS)
@on_the_simulation
def test_a_seeded_bug_is_found(scene: Scene, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, piece = SEEDS[name]
    shown = [call for call in _CALLS if piece in call.source]
    assert shown, f"no call has {piece!r}"
    for call in shown:
        theirs = scene.play(PYMONGO, call.source)
        assert explained(call.source, theirs, scene.play(GMONGO, call.source)) is not None
        with monkeypatch.context() as patch:
            seed(patch)
            ours = scene.play(GMONGO, call.source)
        if explained(call.source, theirs, ours) is None:
            return
    raise AssertionError(f"none of {len(shown)} calls shows it")

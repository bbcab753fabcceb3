"""Tests of random calls: bulk writes with failures, options of cursors, and codec options."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .call_runner import CallRunner
from .differences import check_outcomes

pytestmark = pytest.mark.long

_settings = settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# The documents with the IDs 0 to 9 exist. Some writes insert duplicates, and the server rejects some
# updates.
_ids = st.integers(0, 14)
_write_texts = st.one_of(
    st.builds("InsertOne({{'_id': {}}})".format, _ids),
    st.builds("UpdateOne({{'_id': {}}}, {{'$inc': {{'kind': {}}}}}, upsert={})".format, _ids, _ids, st.booleans()),
    st.builds("UpdateOne({{'_id': {}}}, {{'$nonsense': {{'kind': 1}}}})".format, _ids),
    st.builds("UpdateOne({{'_id': {}}}, {{'$inc': {{'name': 1}}}})".format, _ids),
    st.builds("ReplaceOne({{'_id': {}}}, {{'new': {}}}, upsert={})".format, _ids, _ids, st.booleans()),
    st.builds("UpdateMany({{'kind': {}}}, {{'$set': {{'seen': {}}}}})".format, st.integers(0, 3), _ids),
    st.builds("DeleteOne({{'_id': {}}})".format, _ids),
    st.builds("DeleteMany({{'kind': {}}})".format, st.integers(0, 3)),
)


@given(writes=st.lists(_write_texts, min_size=1, max_size=8), ordered=st.booleans(), acknowledged=st.booleans())
@_settings
def test_bulk_write_has_outcome_of_pymongo(
    runner: CallRunner, writes: list[str], ordered: bool, acknowledged: bool
) -> None:
    assert_equal_outcomes(
        runner,
        f"things = c.with_options(write_concern=WriteConcern(w={int(acknowledged)}))\n"
        f"things.bulk_write([{', '.join(writes)}], ordered={ordered})",
    )


@given(writes=st.lists(_write_texts, min_size=1, max_size=6), ordered=st.booleans(), verbose=st.booleans())
@_settings
def test_client_bulk_write_has_outcome_of_pymongo(
    runner: CallRunner, writes: list[str], ordered: bool, verbose: bool
) -> None:
    models = [f"{write[:-1]}, namespace='differential.things')" for write in writes]
    assert_equal_outcomes(
        runner, f"client.bulk_write([{', '.join(models)}], ordered={ordered}, verbose_results={verbose})"
    )


_options: dict[str, st.SearchStrategy[Any]] = {
    "skip": st.integers(0, 12),
    "limit": st.integers(-7, 12),
    "batch_size": st.integers(0, 5),
    "sort": st.sampled_from([[("_id", -1)], [("kind", 1), ("_id", -1)], {"name": -1}, ["kind", ("_id", 1)]]),
    "projection": st.sampled_from([{"name": 1}, {"_id": 0, "kind": 1}, ["name"], {"tags": {"$slice": 1}}, {"kind": 0}]),
    "hint": st.sampled_from(["_id_", [("_id", 1)]]),
    "max_time_ms": st.just(900),
    "comment": st.sampled_from(["x", {"a": 1}]),
    "collation": st.just({"locale": "en", "strength": 2}),
    "show_record_id": st.just(False),
    "allow_disk_use": st.booleans(),
}
_cursor_uses = st.sampled_from(
    [
        "cursor.to_list()",
        "list(cursor), cursor.alive, cursor.retrieved",
        "next(cursor, None), cursor.retrieved, cursor.alive, list(cursor)",
        "cursor.clone().to_list(), list(cursor)",
        "next(cursor, None), cursor.rewind().to_list()",
        "cursor.to_list(3), cursor.to_list()",
        "cursor[1:4].to_list()",
        "raised_by(lambda: cursor[2])",
        "next(cursor, None), cursor.close(), list(cursor)",
        "cursor.distinct('kind')",
    ]
)


@given(
    filter=st.sampled_from(["{}", "{'kind': 1}", "{'_id': {'$gt': 3}}", "{'kind': 7}"]),
    options=st.fixed_dictionaries({}, optional=_options),
    use_of_cursor=_cursor_uses,
)
@_settings
def test_cursor_with_options_has_outcome_of_pymongo(
    runner: CallRunner, filter: str, options: dict[str, Any], use_of_cursor: str
) -> None:
    option_text = "".join(f", {name}={value!r}" for name, value in options.items())
    assert_equal_outcomes(runner, f"cursor = c.find({filter}{option_text})\n{use_of_cursor}")


_codec_option_texts = st.sampled_from(
    [
        "uuid_representation=4",
        "uuid_representation=3",
        "document_class=SON",
        "document_class=RawBSONDocument",
        "tz_aware=True",
        "type_registry=DECIMALS",
        "uuid_representation=4, document_class=SON, tz_aware=True",
        "unicode_decode_error_handler='replace'",
    ]
)
_value_texts = st.sampled_from(
    ["U", "Decimal('1.5')", "datetime.datetime(2020, 1, 2)", "{'a': [U]}", "'x'", "Int64(5)", "b'x'"]
)
_operation_texts = st.sampled_from(
    [
        "c.insert_one({'_id': V}).inserted_id, c.find_one({'_id': V})",
        "c.insert_many([{'_id': V}, {'v': V}]).inserted_ids[0]",
        "c.update_one({'_id': V}, {'$set': {'v': V}}, upsert=True)",
        "c.replace_one({'_id': V}, {'v': V}, upsert=True).upserted_id",
        "c.bulk_write([UpdateOne({'_id': V}, {'$set': {'v': V}}, upsert=True), DeleteOne({'v': V})])",
        "c.find_one_and_update({'_id': 1}, {'$set': {'v': V}}, return_document=True)",
        "c.find({'v': V}).to_list(), c.count_documents({'v': V}), c.distinct('v', {'v': V})",
        "c.aggregate([{'$match': {'_id': 1}}, {'$set': {'v': {'$literal': V}}}]).to_list()",
        "c.insert_one({'_id': V}), raised_by(lambda: c.insert_one({'_id': V}))",
        "c.delete_many({'v': V}).deleted_count, c.delete_one({'_id': V}).raw_result",
        "c.database.command('find', 'things', filter={'_id': 1}, codec_options=c.codec_options)['cursor']",
    ]
)


@given(codec=_codec_option_texts, value=_value_texts, operation=_operation_texts)
@_settings
def test_codec_options_have_outcome_of_pymongo(runner: CallRunner, codec: str, value: str, operation: str) -> None:
    assert_equal_outcomes(runner, f"c = c.with_options(codec_options=CodecOptions({codec}))\nV = {value}\n{operation}")


def assert_equal_outcomes(runner: CallRunner, source: str) -> None:
    """Run a call with gmongo and PyMongo.

    Fail if the outcomes differ in a way that is not intended.
    """
    if runner.name == "nx-27017":
        pytest.skip("nx-27017 is not deterministic")
    check_outcomes(source, *runner.compare(source))

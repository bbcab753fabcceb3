"""Connection pool options (CMAP-07 to CMAP-19)."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.client_options import ClientOptions
from gmongo.cmap.pool_settings import PoolSettings
from gmongo.collection import Collection
from gmongo.database import Database
from tests.support.recorder import short_pool_event_name
from tests.support.server import ScriptedReplicaSet
from tests.support.wait import eventually

OPTION_NAMES = ("maxPoolSize", "minPoolSize", "maxIdleTimeMS", "maxConnecting", "waitQueueTimeoutMS")
OPTIONS = {"maxPoolSize": 7, "minPoolSize": 2, "maxIdleTimeMS": 60_000, "maxConnecting": 3, "waitQueueTimeoutMS": 4_000}


def pool_options(host: Any = "h", **keywords: Any) -> PoolSettings:
    return ClientOptions(host, None, keywords).topology().pool


@pytest.mark.requirement("CMAP-02", "CMAP-12", "CMAP-15", "CMAP-17")
def test_uri_and_keyword_arguments_set_equal_pool_options() -> None:
    query = "&".join(f"{name}={value}" for name, value in OPTIONS.items())
    from_uri, from_keywords = pool_options(f"mongodb://h/?{query}"), pool_options(**OPTIONS)
    assert from_uri == from_keywords
    assert (from_uri.max_pool_size, from_uri.min_pool_size, from_uri.max_connecting) == (7, 2, 3)
    assert (from_uri.max_idle_time, from_uri.wait_queue_timeout) == (60, 4)


@pytest.mark.requirement("CMAP-14")
@pytest.mark.parametrize("method", [MongoClient.get_database, Database.get_collection, Collection.find])
def test_databases_collections_and_cursors_have_no_pool_options(method: Any) -> None:
    parameters = {name.lower().replace("_", "") for name in inspect.signature(method).parameters}
    assert not parameters & {name.lower() for name in OPTION_NAMES}


@pytest.mark.requirement("CMAP-01", "CMAP-16", "CMAP-46", "CMAP-47", "CMAP-182", "CMAP-237")
def test_each_pool_of_client_has_pool_options_of_client(new_client: Any, recorder: Any) -> None:
    with ScriptedReplicaSet(3) as replica_set:
        client = new_client(replica_set.members[0].name, replicaSet="scripted", minPoolSize=1, maxPoolSize=5)
        eventually(lambda: len({event.address for event in recorder.events_named("Ready")}) == 3)
        created = recorder.events_named("PoolCreated")
        assert [event.options for event in created] == [{"maxPoolSize": 5, "minPoolSize": 1}] * 3
        assert sorted(event.address for event in created) == sorted(member.address for member in replica_set.members)
        pools = client._topology.pools()
        assert len({id(pool) for pool in pools}) == len({pool.address for pool in pools}) == 3
        for address in {pool.address for pool in pools}:
            first = next(event for event in recorder.events if event.address == address)
            assert short_pool_event_name(first) == "PoolCreated"


@pytest.mark.requirement("CMAP-182", "CMAP-214")
@pytest.mark.parametrize("value", [0, 1, 999, 1001, 1009, 60_000])
def test_specified_times_of_pool_options_keep_milliseconds(value: int) -> None:
    specified = pool_options(maxIdleTimeMS=value, waitQueueTimeoutMS=value).specified
    assert specified == {"maxIdleTimeMS": value, "waitQueueTimeoutMS": value}

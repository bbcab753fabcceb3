"""``timeoutMS`` and :func:`gmongo.timeout` set one deadline for all steps of an operation."""

from __future__ import annotations

import gevent
import gevent.event
import pytest

import gmongo
from gmongo.errors import (
    PyMongoError,
)
from gmongo.testing import Deployment
from tests.execution.harness import assert_no_resource_in_use, delay_replies
from tests.execution.operations import WITH_SESSION
from tests.support.clients import Client, Connect
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.usefixtures("real_time_limit")


@pytest.mark.parametrize("operation", WITH_SESSION)
def test_each_command_times_out_and_has_max_time_ms(deployment: Deployment, connect: Connect, operation: str) -> None:
    name, run = WITH_SESSION[operation]
    client = connect(deployment)
    client.db.c.insert_many([{"_id": 1}, {"_id": 2}])
    deployment.commands.clear()
    delay_replies(deployment, name)
    with pytest.raises(PyMongoError) as raised, gmongo.timeout(0.05):
        run(client, None)
    assert raised.value.timeout
    sent = deployment.commands.named(name)[0].body
    assert 0 < sent["maxTimeMS"] <= 50
    assert_no_resource_in_use(client)


def test_timeout_block_overrides_timeout_ms(server: ScriptedServer, connect: Connect) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=1000)
    with gmongo.timeout(20):
        client.db.c.find_one()
    client.db.c.find_one()
    first, second = [command["maxTimeMS"] for command in server.commands("find")]
    assert second <= 1000 < first


def test_greenlet_spawned_in_timeout_block_has_no_deadline(server: ScriptedServer, scripted_client: Client) -> None:
    with gmongo.timeout(10):
        gevent.spawn(scripted_client.db.c.find_one).get()
    assert "maxTimeMS" not in server.commands("find")[0]

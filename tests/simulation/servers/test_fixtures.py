"""Tests of the pytest fixtures that start remote deployments for programs without gevent."""

from __future__ import annotations

import pytest
from pymongo import MongoClient

from gmongo.testing import DeploymentProcess, DeploymentThread

DEPLOYMENT_CLASSES = {"thread": DeploymentThread, "process": DeploymentProcess}


@pytest.mark.parametrize("kind", DEPLOYMENT_CLASSES)
@pytest.mark.parametrize(
    ("fixture_prefix", "hello_field"),
    [
        ("mongodb_standalone", ("isWritablePrimary", True)),
        ("mongodb_replica_set", ("setName", "rs0")),
        ("mongodb_sharded_cluster", ("msg", "isdbgrid")),
    ],
)
def test_pymongo_connects_to_fixture_of_remote_deployment(request, kind, fixture_prefix, hello_field):
    deployment = request.getfixturevalue(f"{fixture_prefix}_{kind}")
    assert isinstance(deployment, DEPLOYMENT_CLASSES[kind])
    with MongoClient(deployment.uri) as client:
        hello = client.admin.command("hello")
        client.db.c.insert_one({})
    assert hello_field in hello.items() and deployment.commands.named("insert")

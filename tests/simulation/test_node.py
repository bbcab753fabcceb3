"""MongoDB's driver for Node as a client of simulated deployments; ``tox -e node`` installs and names it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gmongo.testing import DeploymentProcess

SMOKE = Path(__file__).with_name("node") / "smoke.mjs"

pytestmark = pytest.mark.skipif(
    "NODE_DRIVER" not in os.environ, reason="NODE_DRIVER does not name a directory with node_modules/mongodb"
)


@pytest.mark.parametrize("kind", ["standalone", "replica_set", "sharded", "load_balanced"])
def test_the_driver_for_node(kind):
    with getattr(DeploymentProcess, kind)() as deployment:
        command = ["node", str(SMOKE), deployment.uri, kind]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, text=True, **pipes) as node:
            first = node.stdout.readline()
            if kind == "replica_set":
                deployment.members.primary.step_down()
            said, complaints = node.communicate("go on\n", timeout=60)
        assert (first + said, node.returncode) == ("ready\ndone\n", 0), complaints
        assert deployment.commands.named("insert")[-1].body["documents"] == [{"_id": "afterwards"}]

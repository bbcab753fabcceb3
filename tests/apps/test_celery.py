"""A Celery worker with a pool of greenlets runs tasks that use a client.

The broker stores messages in a folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gmongo.testing import Deployment
from tests.support.fail_points import fail
from tests.support.wait import until

from .hosting import hosted, open_connections

pytestmark = pytest.mark.long

pytest.importorskip("celery")

COMMAND = ["-m", "celery", "-A", "tests.apps.tasks", "worker", "-P", "gevent", "-c", "4", "--loglevel", "INFO"]
QUIET_OPTIONS = ["--without-mingle", "--without-gossip", "--without-heartbeat"]


def task_results(deployment):
    """Return the document that each task has read, by the number of the task."""
    inserts = [each.body for each in deployment.commands.named("insert") if each.body["insert"] == "task_results"]
    return {document["_id"]: document["found"] for body in inserts for document in body["documents"]}


class Broker:
    """Broker that sends complete messages to the worker.

    The broker writes each message to a private folder, and then moves the file to the worker's folder.
    """

    def __init__(self, folder: Path) -> None:
        from .tasks import celery_app

        self.queue, self._outbox = folder / "queue", folder / "outbox"
        self.queue.mkdir()
        self._outbox.mkdir()
        self._app = celery_app(str(self._outbox))

    def send(self, numbers: range) -> None:
        for number in numbers:
            self._app.send_task("hosted.note", [number])
        for message in list(self._outbox.glob("*.msg")):
            message.rename(self.queue / message.name)


def test_warm_shutdown_completes_running_tasks(tmp_path):
    broker = Broker(tmp_path)
    with (
        Deployment.replica_set(members=1) as deployment,
        hosted(deployment, tmp_path / "log", *COMMAND, *QUIET_OPTIONS, HOSTED_FOLDER=str(broker.queue)) as host,
    ):
        broker.send(range(20))
        until(lambda: len(task_results(deployment)) == 20)

        fail(deployment, "find", times=4, blockConnection=True, blockTimeMS=1000)
        broker.send(range(20, 24))
        until(lambda: len(deployment.commands.named("find")) >= 24)
        assert host.end() == 0
        assert task_results(deployment) == {number: {"_id": number} for number in range(24)}
        until(lambda: not open_connections(deployment))
        assert host.matches("(Warm shutdown)")
        # Permit only Celery's security warning, which Celery prints if the user is root.
        assert [line for line in host.warnings_and_errors if "ecurity" not in line] == []

"""Tests of New Relic's instrumentation of `pymongo`.

Each program runs in a separate process, because the agent of New Relic installs import hooks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

import pytest

PROGRAM = """
    import os
    os.environ.update(NEW_RELIC_LICENSE_KEY="x" * 40, NEW_RELIC_DEVELOPER_MODE="true", NEW_RELIC_LOG="/dev/null")
    {line}
    import newrelic.agent
    {other_line}
    newrelic.agent.initialize()
    import pymongo, pymongo.collection
    from pymongo.mongo_client import MongoClient
    from newrelic.api.datastore_trace import DatastoreTrace
    from newrelic.hooks import datastore_pymongo
    operations = []
    class RecordedTrace(DatastoreTrace):
        def __enter__(self):
            operations.append(self.operation)
            return super().__enter__()
    datastore_pymongo.DatastoreTrace = RecordedTrace
    application = newrelic.agent.register_application(timeout=0.1)
    with MongoClient(os.environ["MONGODB_URI"]) as client, newrelic.agent.BackgroundTask(application, "task"):
        client.test.c.insert_one({{"_id": 1}})
        client.test.c.find_one()
        client.test.c.delete_many({{}})
    print(*(each for each in operations if each != "find"))  # PyMongo implements find_one with find
"""


@pytest.mark.parametrize("import_is_first", [True, False], ids=["import first", "agent first"])
def test_new_relic_agent_traces_collection_methods(import_is_first):
    line = "import gmongo.as_pymongo" if os.environ["GMONGO_DRIVER"] == "gmongo" else ""
    lines = {"line": line, "other_line": ""} if import_is_first else {"line": "", "other_line": line}
    completed = subprocess.run(
        [sys.executable, "-c", dedent(PROGRAM.format(**lines))], capture_output=True, text=True, timeout=50, check=False
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines()[-1] == "insert_one find_one delete_many"

"""Tests of the private names of PyMongo that published libraries use."""

from __future__ import annotations

import json

import pytest

from gmongo.testing import DeploymentProcess
from tests.support.cases import rows
from tests.support.programs import run_python

# Expressions with a private name of PyMongo. For each expression, the table lists the libraries that
# use the name. A search in the distributions that require PyMongo found the names.
EXPRESSIONS = [row["expression"] for row in rows(__file__, "names")]
# Flask-PyMongo uses this name of an older version of PyMongo.
OLDER_EXPRESSIONS = ["client.a.b._Collection__database == client.a"]

PROGRAM = """
import json, os, sys
import gridfs, gridfs.synchronous.grid_file, pymongo, pymongo.encryption_options
from pymongo import *
from unittest.mock import Mock

def bulk_calls(model):
    bulk = Mock()
    model._add_to_bulk(bulk)
    return bulk.mock_calls

options = pymongo.encryption_options.AutoEncryptionOpts({"local": {"key": bytes(96)}}, "keys.vault")
client = MongoClient(os.environ["MONGODB_URI"])
file_id = gridfs.GridFS(client.a).put(b"x")
print(json.dumps({expression: repr(eval(expression)) for expression in json.loads(sys.argv[1])}))
"""


def evaluate(first_line: str, expressions: list[str], uri: str) -> dict[str, str]:
    completed = run_python("-c", first_line + PROGRAM, json.dumps(expressions), uri=uri)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_private_names_that_libraries_use_have_values_of_pymongo():
    pytest.importorskip("pymongocrypt")  # AutoEncryptionOpts needs pymongocrypt
    line = "import gmongo.as_pymongo\n"
    with DeploymentProcess("--standalone") as deployment:
        assert evaluate(line, EXPRESSIONS, deployment.uri) == evaluate("", EXPRESSIONS, deployment.uri)
        assert set(evaluate(line, OLDER_EXPRESSIONS, deployment.uri).values()) == {"True"}

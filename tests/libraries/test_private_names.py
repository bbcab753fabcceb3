"""Tests of the private names of PyMongo that published libraries use."""

from __future__ import annotations

import json

import pytest

from gmongo.testing import DeploymentProcess
from tests.support.programs import run_python

# Expression that contains a private name of PyMongo -> libraries that use the expression. The table
# was made by a search through the distributions that require PyMongo.
NAMES = {
    "client._options.auto_encryption_opts": "django-mongodb-backend",
    "client.a._client is client": "Ming, mongomock",
    "client.a._name": "Ming",
    "client.a.b._name": "Ming",
    "client.a.b._database == client.a": "Ming",
    "client.a.b.find()._collection.full_name": "MongoEngine's tests",
    "client.a.b.aggregate([])._collection.full_name": "MongoEngine's tests",
    "client.a.b.list_indexes()._collection.full_name": "MongoEngine's tests",
    "gridfs.GridFS(client.a, 'files')._collection.full_name": "pymodm",
    "gridfs.GridFS(client.a).get(file_id)._id == file_id": "Flask-PyMongo, MongoEngine",
    "gridfs.GridFS(client.a).new_file(_id=7)._id": "Flask-PyMongo, pymodm",
    "options._kms_providers": "django-mongodb-backend",
    "options._key_vault_namespace": "django-mongodb-backend",
    "pymongo.read_preferences._MONGOS_MODES": "kombu",
    "pymongo.common._UUID_REPRESENTATIONS": "MongoEngine",
    "pymongo.common.validate_read_preference('', ReadPreference.NEAREST).mode": "MongoEngine",
    "pymongo.common.MAX_WRITE_BATCH_SIZE": "PyMongoArrow",
    "pymongo.database_shared._check_name('a')": "MongoEngine",
    "pymongo.cursor_shared._QUERY_OPTIONS['tailable_cursor']": "Motor",
    "issubclass(gridfs.synchronous.grid_file.GridOutCursor, pymongo.cursor.Cursor)": "mongomock",
    "gridfs.synchronous.grid_file.Database is pymongo.database.Database": "mongomock",
    "gridfs.synchronous.grid_file.Collection is pymongo.collection.Collection": "mongomock",
}

OPTIONS = "collation={'locale': 'de'}, hint=[('a', 1)]"
UPDATE = f"{{'a': 1}}, {{'$set': {{'b': 1}}}}, True, {OPTIONS}, array_filters=[{{'x': 1}}]"
MODELS = {
    "InsertOne({'_id': 1})": ("_doc",),
    f"DeleteOne({{'a': 1}}, {OPTIONS})": ("_filter",),
    f"DeleteMany({{'a': 1}}, {OPTIONS})": ("_filter",),
    f"ReplaceOne({{'a': 1}}, {{'b': 1}}, True, {OPTIONS}, sort={{'c': 1}})": ("_filter", "_doc", "_upsert"),
    f"UpdateOne({UPDATE}, sort={{'c': 1}})": ("_filter", "_doc", "_upsert"),
    f"UpdateMany({UPDATE})": ("_filter", "_doc", "_upsert"),
}
NAMES |= {f"{model}.{name}": "Ming" for model, names in MODELS.items() for name in names}
NAMES |= {f"bulk_calls({model})": "mongomock" for model in MODELS}

NAMES_OF_OLDER_PYMONGO = {"client.a.b._Collection__database == client.a": "Flask-PyMongo"}

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


def evaluate(line: str, names: dict[str, str], uri: str) -> dict[str, str]:
    completed = run_python("-c", line + PROGRAM, json.dumps(list(names)), uri=uri)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_private_names_that_libraries_use_have_values_of_pymongo():
    pytest.importorskip("pymongocrypt")  # AutoEncryptionOpts needs pymongocrypt
    line = "import gmongo.as_pymongo\n"
    with DeploymentProcess("--standalone") as deployment:
        assert evaluate(line, NAMES, deployment.uri) == evaluate("", NAMES, deployment.uri)
        assert set(evaluate(line, NAMES_OF_OLDER_PYMONGO, deployment.uri).values()) == {"True"}

"""The service on Flask, with the driver that the environment variable ``SERVICE_DRIVER`` names."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any

from flask import Flask, Response

from benchmarks.documents import DATABASE, HUNDRED, ONE, QUERY

app = Flask(__name__)
database = importlib.import_module(os.environ["SERVICE_DRIVER"]).MongoClient(os.environ["SERVICE_URI"])[DATABASE]


def _json(content: Any) -> Response:
    return Response(json.dumps(content, default=str), content_type="application/json")


@app.get("/one")
def one() -> Response:
    """Return one document."""
    return _json(database[ONE].find_one(QUERY))


@app.get("/hundred")
def hundred() -> Response:
    """Return a hundred documents."""
    return _json(list(database[HUNDRED].find()))

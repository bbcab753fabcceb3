"""A service with observability: metrics for Prometheus, and a status page for operators.

gunicorn -k gevent -w 4 -c examples/telemetry/gunicorn.conf.py examples.telemetry.app:app
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from flask import Flask, jsonify
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from gmongo import MongoClient
from gmongo.status import StatusPage

# Pass this directory to `python -m gmongo.status`.
STATE_FOLDER = os.environ.get("STATES") or os.path.join(tempfile.gettempdir(), f"shop-states-{os.getuid()}")

app = Flask(__name__)
client: MongoClient[dict[str, Any]] = MongoClient(
    os.environ.get("MONGODB_URI"), appName="shop", metrics=True, slow_operation_ms=200
)
orders = client.get_default_database("gmongo_examples").telemetry_orders


@app.post("/orders")
def place_order() -> Any:
    """Place an order."""
    return jsonify(number=str(orders.insert_one({"state": "new"}).inserted_id)), 201


@app.get("/orders")
def count_orders() -> Any:
    """Count the orders."""
    return jsonify(orders=orders.estimated_document_count())


# A real service must protect this page with the authentication of its operators.
app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/debug/mongodb": StatusPage(STATE_FOLDER)})  # type: ignore[method-assign]

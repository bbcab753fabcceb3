"""A small Flask application that receives orders.

``test_app.py`` tests the application with failing servers.
"""

from __future__ import annotations

from typing import Any

from flask import Flask, Response, jsonify, request

from gmongo import MongoClient
from gmongo.errors import ConnectionFailure, DuplicateKeyError


def create_app(client: MongoClient[dict[str, Any]]) -> Flask:
    """Create the application.

    :param client: the client whose database ``shop`` stores the orders.
    """
    app = Flask(__name__)
    orders = client.shop.orders

    @app.put("/orders/<int:number>")
    def place_order(number: int) -> tuple[Response, int]:
        """Place an order. A repeated request with the same number does not place a second order."""
        try:
            orders.insert_one({"_id": number, "item": request.get_json()["item"]})
        except DuplicateKeyError:
            return jsonify(number=number), 200
        return jsonify(number=number), 201

    @app.get("/orders")
    def list_orders() -> Response:
        """List the numbers of all orders."""
        return jsonify(orders=[order["_id"] for order in orders.find({}, {"_id": 1}).sort("_id")])

    @app.errorhandler(ConnectionFailure)
    def service_unavailable(_error: ConnectionFailure) -> tuple[Response, int, dict[str, str]]:
        return jsonify(error="the database is unavailable"), 503, {"Retry-After": "5"}

    return app

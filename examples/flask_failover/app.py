"""A small Flask application that takes orders; ``test_app.py`` shows what happens to them when servers fail."""

from __future__ import annotations

from typing import Any

from flask import Flask, Response, jsonify, request

from gmongo import MongoClient
from gmongo.errors import ConnectionFailure, DuplicateKeyError


def create_app(client: MongoClient[dict[str, Any]]) -> Flask:
    """The application.

    :param client: of the database that keeps the orders.
    """
    app = Flask(__name__)
    orders = client.shop.orders

    @app.put("/orders/<int:number>")
    def place(number: int) -> tuple[Response, int]:
        """Place an order. To repeat it does no harm."""
        try:
            orders.insert_one({"_id": number, "item": request.get_json()["item"]})
        except DuplicateKeyError:
            return jsonify(number=number), 200
        return jsonify(number=number), 201

    @app.get("/orders")
    def show() -> Response:
        """The numbers of all orders."""
        return jsonify(orders=[order["_id"] for order in orders.find({}, {"_id": 1}).sort("_id")])

    @app.errorhandler(ConnectionFailure)
    def away(_error: ConnectionFailure) -> tuple[Response, int, dict[str, str]]:
        return jsonify(error="the database is away"), 503, {"Retry-After": "5"}

    return app

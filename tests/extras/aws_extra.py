"""MONGODB-AWS needs no packages. The program signs the server nonce with credentials from environment variables."""

from __future__ import annotations

import os
from typing import Any

import bson

import gmongo
from tests.support.server import ScriptedServer


def main() -> None:
    os.environ.update(AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="SECRET")

    def begin(command: dict[str, Any]) -> dict[str, Any]:
        nonce = bson.decode(command["payload"])["r"]
        payload = bson.encode({"s": nonce + bytes(32), "h": "sts.amazonaws.com"})
        return {"ok": 1, "conversationId": 1, "payload": payload, "done": False}

    replies = {"saslStart": begin, "saslContinue": {"ok": 1, "conversationId": 1, "payload": b"", "done": True}}
    with (
        ScriptedServer(replies) as server,
        gmongo.MongoClient("127.0.0.1", server.port, authMechanism="MONGODB-AWS") as client,
    ):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        signed = bson.decode(server.commands("saslContinue")[0]["payload"])
        assert signed["a"].startswith("AWS4-HMAC-SHA256 Credential=KEY/")

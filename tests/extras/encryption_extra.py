"""Encrypt and decrypt a value on the client with a local master key."""

from __future__ import annotations

from typing import Any

import gmongo
from gmongo.encryption import Algorithm, ClientEncryption
from tests.support.server import ScriptedServer, cursor_reply


def main() -> None:
    keys: list[Any] = []

    def insert(command: dict[str, Any]) -> dict[str, Any]:
        keys.extend(command["documents"])
        return {"ok": 1, "n": len(command["documents"])}

    replies = {"insert": insert, "find": lambda _command: cursor_reply(keys)}
    providers = {"local": {"key": bytes(96)}}
    with (
        ScriptedServer(replies) as server,
        gmongo.MongoClient("127.0.0.1", server.port) as client,
        ClientEncryption(providers, "keys.vault", client, client.codec_options) as encryption,
    ):
        key = encryption.create_data_key("local")
        secret = encryption.encrypt("a secret", Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random, key)
        assert secret.subtype == 6
        assert b"a secret" not in secret
        assert encryption.decrypt(secret) == "a secret"

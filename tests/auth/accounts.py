"""A scripted server that has users, and authenticates the users with SCRAM."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import os
from typing import Any

from gmongo.auth.scram import prepared_password
from tests.support.server import ScriptedServer

REFUSAL_REPLY = {"ok": 0, "errmsg": "Authentication failed.", "code": 18, "codeName": "AuthenticationFailed"}
DIGEST_NAMES = {"SCRAM-SHA-1": "sha1", "SCRAM-SHA-256": "sha256"}
ITERATION_COUNT = 4096


class ServerConversation:
    """Server side of a SCRAM conversation."""

    def __init__(self, server: AuthServer, mechanism: str, payload: bytes) -> None:
        self.server = server
        self.digest = DIGEST_NAMES[mechanism]
        self.first_bare = payload.decode()[3:]
        fields = dict(field.split("=", 1) for field in self.first_bare.split(","))
        self.username = fields["n"].replace("=2C", ",").replace("=3D", "=")
        self.nonce = fields["r"] + "server"
        self.mechanism = mechanism

    def first_message_payload(self) -> bytes:
        salt = base64.b64encode(self.server.salt).decode()
        self.first_message = f"r={self.nonce},s={salt},i={ITERATION_COUNT}"
        return self.first_message.encode()

    def final_message_payload(self, payload: bytes) -> bytes | None:
        password = self.server.users.get(self.username)
        without_proof, _, proof = payload.decode().rpartition(",p=")
        if password is None or without_proof != f"c=biws,r={self.nonce}":
            return None
        prepared = prepared_password(self.mechanism, self.username, password)
        salted_password = hashlib.pbkdf2_hmac(self.digest, prepared, self.server.salt, ITERATION_COUNT)
        client_key = hmac.digest(salted_password, b"Client Key", self.digest)
        stored_key = hashlib.new(self.digest, client_key).digest()
        auth_message = f"{self.first_bare},{self.first_message},{without_proof}".encode()
        signature = hmac.digest(stored_key, auth_message, self.digest)
        if bytes(a ^ b for a, b in zip(client_key, signature, strict=True)) != base64.b64decode(proof):
            return None
        server_key = hmac.digest(salted_password, b"Server Key", self.digest)
        return b"v=" + base64.b64encode(hmac.digest(server_key, auth_message, self.digest))


class AuthServer(ScriptedServer):
    """Scripted server that authenticates users. ``users`` maps each user name to the password."""

    def __init__(self, users: dict[str, str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.users = users if users is not None else {"ann": "pencil"}
        self.salt = os.urandom(16)
        self.speculates = True
        self.skips_empty_exchange = True  # like MongoDB 4.4 and later
        self.conversations: dict[int, ServerConversation] = {}
        self.conversation_ids = itertools.count(1)

    def reply_to(self, name: str, command: dict[str, Any]) -> dict[str, Any]:
        if name == "saslStart":
            return self.start_conversation(command)
        if name == "saslContinue":
            return self.continue_conversation(command)
        reply = super().reply_to(name, command)
        if name == "handshake":
            requested_user = command.get("saslSupportedMechs")
            if requested_user is not None and requested_user.split(".", 1)[1] in self.users:
                reply["saslSupportedMechs"] = list(DIGEST_NAMES)
            speculation = command.get("speculativeAuthenticate")
            if speculation is not None and "saslStart" in speculation and self.speculates:
                answer = self.start_conversation(speculation)
                if answer.pop("ok"):
                    reply["speculativeAuthenticate"] = answer
        return reply

    def start_conversation(self, command: dict[str, Any]) -> dict[str, Any]:
        if command.get("mechanism") not in DIGEST_NAMES:
            return super().reply_to("saslStart", command)
        conversation = ServerConversation(self, command["mechanism"], command["payload"])
        if conversation.username not in self.users:
            return dict(REFUSAL_REPLY)
        number = next(self.conversation_ids)
        self.conversations[number] = conversation
        return {"ok": 1, "conversationId": number, "done": False, "payload": conversation.first_message_payload()}

    def continue_conversation(self, command: dict[str, Any]) -> dict[str, Any]:
        number = command["conversationId"]
        if not command["payload"]:
            return {"ok": 1, "conversationId": number, "done": True, "payload": b""}
        final = self.conversations[number].final_message_payload(command["payload"])
        if final is None:
            return dict(REFUSAL_REPLY)
        return {"ok": 1, "conversationId": number, "done": self.skips_empty_exchange, "payload": final}

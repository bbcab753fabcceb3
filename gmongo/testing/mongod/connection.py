"""Send each command to an embedded server through a new connection, without a MongoClient."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from collections.abc import Mapping
from typing import Any

import bson

from gmongo import _random
from gmongo.errors import ProtocolError
from gmongo.wire.connect import connect
from gmongo.wire.message import decode_reply, encode_op_msg, next_request_id
from gmongo.wire.race import Race
from gmongo.wire.timeout import interrupt_after
from gmongo.wire.tls import Tls
from gmongo.wire.transport import Transport


class CommandFailedError(RuntimeError):
    """A server replied to a command with an error, or sent no reply. `reply` is empty if there is no reply."""

    def __init__(self, text: str, reply: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.reply = dict(reply or {})


def run_command(
    address: tuple[str, int],
    command: Mapping[str, Any],
    *,
    credentials: tuple[str, str] | None = None,
    ca_file: str | None = None,
    api_version: str | None = None,
    timeout: float = 60.0,
) -> dict[str, Any]:
    """Run a command on the database ``admin`` through a new connection, and return the reply.

    :param credentials: the name and the password of a user of ``admin``, for SCRAM-SHA-256.
    :param ca_file: the path of the CA certificate, for a server with TLS.
    :param api_version: the version of the Stable API that each command declares.
    :param timeout: seconds until the reply must arrive; 60 by default.
    """
    version_field = {"apiVersion": api_version} if api_version else {}
    resources: list[Transport | Race] = []
    timeout_error = TimeoutError(f"no reply within {timeout:g} seconds")
    tls = Tls(ssl.create_default_context(cafile=ca_file)) if ca_file else None
    try:
        with interrupt_after(timeout, timeout_error):
            transport = connect(address, resources.append, tls=tls)
            if credentials is not None:
                _authenticate(transport, *credentials, version_field)
            return _exchange(transport, {**command, **version_field})
    except (OSError, EOFError, ProtocolError, bson.InvalidBSON) as error:
        raise CommandFailedError(f"{next(iter(command))} on {address[0]}:{address[1]}: {error}") from error
    finally:
        for resource in resources:
            resource.close()


def _exchange(transport: Transport, command: Mapping[str, Any]) -> dict[str, Any]:
    request_id = next_request_id()
    transport.send(encode_op_msg(request_id, 0, bson.encode({**command, "$db": "admin"})))
    _reply_id, _response_to, opcode, payload = transport.receive(request_id)
    reply = bson.decode(decode_reply(opcode, payload)[0])
    if not reply.get("ok"):
        raise CommandFailedError(f"{next(iter(command))}: {reply.get('errmsg')}", reply)
    return reply


def _authenticate(transport: Transport, user: str, password: str, version_field: dict[str, str]) -> None:
    """Authenticate with SCRAM-SHA-256 (RFC 7677), without a check of the server signature."""
    nonce = base64.b64encode(_random.urandom(18)).decode()
    client_first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    start_command = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": f"n,,{client_first}".encode()}
    reply = _exchange(transport, {**start_command, "options": {"skipEmptyExchange": True}, **version_field})
    challenge = reply["payload"].decode()
    fields = dict(field.split("=", 1) for field in challenge.split(","))
    salted_password = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    client_key = hmac.digest(salted_password, b"Client Key", "sha256")
    client_final = f"c=biws,r={fields['r']}"
    auth_message = f"{client_first},{challenge},{client_final}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), auth_message, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    payload = f"{client_final},p={proof}".encode()
    continue_command = {"saslContinue": 1, "conversationId": reply["conversationId"], "payload": payload}
    _exchange(transport, {**continue_command, **version_field})

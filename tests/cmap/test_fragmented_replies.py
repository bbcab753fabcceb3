"""An exchange has the same result whether the reply arrives in one piece or in several pieces."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import bson
import gevent
import gevent.socket
import pytest
from gevent.server import StreamServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gmongo._tls import tls_context
from gmongo.cmap.connection import Connection
from gmongo.wire import checksum
from gmongo.wire.message import CHECKSUM_PRESENT, MORE_TO_COME, OP_COMPRESSED, OP_MSG, OP_REPLY, encode_op_msg
from gmongo.wire.tls import Tls
from tests.support.streams import open_stream
from tests.support.tls import server_context

REQUEST_ID = 7
MAX_MESSAGE_SIZE = 4_000
EXCHANGE_TIMEOUT = 5  # seconds
BODY = bson.encode({"ok": 1, "text": "x" * 100})


def reply(
    body: bytes = BODY,
    response_to: int = REQUEST_ID,
    opcode: int = OP_MSG,
    flags: int = 0,
    section_kind: int = 0,
    length_error: int = 0,
    tail: bytes = b"",
) -> bytes:
    """Return a reply message. Some arguments make the message malformed.

    :param length_error: the number of bytes by which the length in the header exceeds the true
        length.
    :param tail: additional bytes after the message.
    """
    payload = struct.pack("<IB", flags, section_kind) + body
    return struct.pack("<iiii", 16 + len(payload) + length_error, 99, response_to, opcode) + payload + tail


REPLY_WITH_CHECKSUM = checksum.append_checksum(reply(flags=CHECKSUM_PRESENT, length_error=4))
SEQUENCE = b"documents\0" + BODY
REPLIES = {
    "plain": reply(),
    "response to another request": reply(response_to=8),
    "longer than allowed": reply(bson.encode({"text": "x" * MAX_MESSAGE_SIZE})),
    "with extra bytes": reply(tail=b"\0"),
    "with extra reply": reply(tail=reply()),
    "with more to come": reply(flags=MORE_TO_COME, tail=reply()),
    "with a checksum": REPLY_WITH_CHECKSUM,
    "with a wrong checksum": REPLY_WITH_CHECKSUM[:-1] + bytes([REPLY_WITH_CHECKSUM[-1] ^ 1]),
    "with an unknown flag": reply(flags=1 << 5),
    "with an optional flag": reply(flags=1 << 20),
    "a sequence before the body": reply(struct.pack("<i", 4 + len(SEQUENCE)) + SEQUENCE + b"\0" + BODY, section_kind=1),
    "a sequence alone": reply(struct.pack("<i", 4 + len(SEQUENCE)) + SEQUENCE, section_kind=1),
    "an unknown section": reply(section_kind=2),
    "document length too large": reply(struct.pack("<i", len(BODY) + 1) + BODY[4:]),
    "document length too small": reply(struct.pack("<i", len(BODY) - 1) + BODY[4:]),
    "no document": reply(b""),
    "message length too large": reply(length_error=1),
    "message length too small": reply(length_error=-1),
    "message length below header": reply(length_error=-len(reply())),
    "compressed": reply(opcode=OP_COMPRESSED),
    "OP_REPLY": reply(opcode=OP_REPLY),
    "unknown opcode": reply(opcode=1000),
    "empty": b"",
    "half a header": reply()[:9],
    "half a body": reply()[:50],
}


class FragmentingServer(StreamServer):
    """A server that answers a request with the bytes in ``pieces``, and closes the connection."""

    def __init__(self, **tls_options: Any) -> None:
        super().__init__(("127.0.0.1", 0), self.serve, **tls_options)
        self.pieces: list[bytes] = []
        # True to send the pieces without pauses, and to keep the connection open.
        self.keep_open = False

    def serve(self, sock: Any, address: Any) -> None:
        sock.setsockopt(gevent.socket.IPPROTO_TCP, gevent.socket.TCP_NODELAY, 1)
        try:
            while sock.recv(65536):
                for piece in self.pieces:
                    sock.sendall(piece)
                    if not self.keep_open:
                        gevent.sleep(0.002)  # During the pause, the client reads the piece.
                if not self.keep_open:
                    break
        except OSError:
            pass
        finally:
            sock.close()


@pytest.fixture(scope="module", params=["plain", "TLS"])
def fragmenting_server(request: Any, files: SimpleNamespace) -> Iterator[FragmentingServer]:
    uses_tls = request.param == "TLS"
    fragmenting_server = (
        FragmentingServer(ssl_context=server_context(files.server)) if uses_tls else FragmentingServer()
    )
    fragmenting_server.tls = Tls(tls_context({"tls": True, "tlscafile": files.ca})) if uses_tls else None
    fragmenting_server.start()
    yield fragmenting_server
    fragmenting_server.stop()


def connect_to_fragmenting_server(fragmenting_server: FragmentingServer) -> Connection:
    connection = Connection(("127.0.0.1", fragmenting_server.server_port))
    open_stream(connection, fragmenting_server.tls)
    connection._open_transport().set_max_message_size(MAX_MESSAGE_SIZE)
    return connection


def exchange(connection: Connection) -> bytes:
    return connection.exchange(REQUEST_ID, encode_op_msg(REQUEST_ID, 0, BODY), EXCHANGE_TIMEOUT, bytes)


def exchange_outcome(fragmenting_server: FragmentingServer, *pieces: bytes) -> Any:
    """Return the result or error of an exchange whose reply arrives in pieces, and the state of the
    connection.
    """
    fragmenting_server.pieces = [piece for piece in pieces if piece]
    connection = connect_to_fragmenting_server(fragmenting_server)
    try:
        result: Any = exchange(connection)
    except Exception as error:
        result = type(error), str(error)
    connection.close()
    return result, connection.mid_message, repr(connection.error), connection.unanswered_request_id


@pytest.mark.parametrize("name", REPLIES)
def test_reply_in_two_pieces_has_outcome_of_reply_in_one_piece(
    fragmenting_server: FragmentingServer, name: str
) -> None:
    message = REPLIES[name]
    outcome = exchange_outcome(fragmenting_server, message)
    for cut in (1, 16, 24, 100):  # the length of the first piece
        assert exchange_outcome(fragmenting_server, message[:cut], message[cut:]) == outcome
    if name in ("plain", "with more to come", "with a checksum", "with an optional flag", "a sequence before the body"):
        assert outcome[0] == BODY
        assert outcome[2] == "None"
    elif name.startswith("with extra"):
        assert outcome[0] == BODY
        assert "data after the reply" in outcome[2]
    else:
        assert isinstance(outcome[0], tuple)
        assert outcome[1] and outcome[2] != "None"


LENGTH_ERRORS = st.sampled_from([0, 0, 0, 1, -1, 5, -5, 2**31 - 200, -200])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    response_to=st.sampled_from([REQUEST_ID, REQUEST_ID, REQUEST_ID, 0, 8, -1]),
    opcode=st.sampled_from([OP_MSG, OP_MSG, OP_MSG, OP_REPLY, OP_COMPRESSED, 0]),
    flags=st.sampled_from([0, 0, 0, CHECKSUM_PRESENT, MORE_TO_COME, 1 << 4, 1 << 16, 1 << 31]),
    section_kind=st.sampled_from([0, 0, 0, 1, 2, 255]),
    length_error=LENGTH_ERRORS,
    document_length_error=LENGTH_ERRORS,
    tail=st.sampled_from([b"", b"", b"\0", b"\0" * 30, reply()]),
    first_length=st.integers(1, 100),
)
def test_malformed_reply_in_two_pieces_has_outcome_of_reply_in_one_piece(
    fragmenting_server: FragmentingServer, first_length: int, document_length_error: int, **fields: Any
) -> None:
    body = struct.pack("<i", max(-(2**31), min(2**31 - 1, len(BODY) + document_length_error))) + BODY[4:]
    message = reply(body, **fields)
    assert exchange_outcome(fragmenting_server, message[:first_length], message[first_length:]) == exchange_outcome(
        fragmenting_server, message
    )


def test_exchange_reads_already_received_bytes_without_wait(
    fragmenting_server: FragmentingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragmenting_server, "keep_open", True)
    fragmenting_server.pieces = [reply(), reply()]  # both replies arrive before the second request
    connection = connect_to_fragmenting_server(fragmenting_server)
    assert exchange(connection) == BODY
    fragmenting_server.pieces = []
    assert exchange(connection) == BODY
    connection.close()

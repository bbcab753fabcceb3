"""CRC-32C values equal the published test vectors. The driver rejects a reply with a wrong
checksum.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

import bson
import pytest

from gmongo import MongoClient
from gmongo.errors import ProtocolError
from gmongo.testing import Deployment
from gmongo.wire.checksum import append_checksum, crc32c, verify
from gmongo.wire.message import CHECKSUM_PRESENT, OP_MSG
from tests.hostile.callback_server import CallbackServer, hello
from tests.simulation.servers.wire_client import WireClient

# The vectors come from RFC 3720, appendix B.4, and from the catalogue of CRC algorithms
# (CRC-32/ISCSI).
VECTORS = {
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(range(31, -1, -1)): 0x113FDB5C,
    bytes.fromhex(
        "01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018 28000000 00000000 02000000 00000000"
    ): 0xD9963A56,
    b"123456789": 0xE3069283,
    b"": 0,
}


@pytest.mark.parametrize("data", VECTORS, ids=lambda data: data[:9].hex() or "nothing")
def test_crc32c_matches_published_vectors(data: bytes) -> None:
    assert crc32c(data) == VECTORS[data]


def crc32c_by_definition(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 8191, 8192, 8193, 20_000])
def test_crc32c_equals_definition_for_any_length_and_split(size: int) -> None:
    rng = random.Random(size)
    data = rng.randbytes(size)
    cut = rng.randrange(size)
    assert crc32c(data) == crc32c_by_definition(data)
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c_by_definition(data)
    assert crc32c(memoryview(bytearray(data))) == crc32c_by_definition(data)


class ChecksumServer:
    """A server whose replies have checksums. Replies to the commands in ``damaged_commands`` have
    wrong checksums.
    """

    def __init__(self) -> None:
        self.name = ""
        self.damaged_commands: set[str] = set()

    def answer(self, name: str, command: dict[str, Any], number: int, flags: int) -> bytes:
        reply = {key: value for key, value in hello(self.name).items() if key != "topologyVersion"}
        if name == "find":
            size = command["filter"]["size"]
            reply = {"ok": 1, "cursor": {"id": 0, "ns": "db.c", "firstBatch": [{"text": "x" * size}]}}
        body = bson.encode(reply)
        message = struct.pack("<iiiiIB", 25 + len(body), 9, number, OP_MSG, CHECKSUM_PRESENT, 0) + body
        message_with_checksum = bytearray(append_checksum(message))
        if name in self.damaged_commands:
            message_with_checksum[-6] ^= 1  # Damage one byte near the end of the document.
        return bytes(message_with_checksum)


@pytest.fixture
def server() -> Iterator[ChecksumServer]:
    server = ChecksumServer()
    with CallbackServer(server.answer) as peer:
        server.name = peer.name
        yield server


@pytest.mark.parametrize("size", [1, 10_000, 200_000])
def test_wrong_checksum_of_reply_raises_and_closes_connection(server: ChecksumServer, size: int) -> None:
    client: MongoClient[Any]
    with MongoClient(server.name, directConnection=True, serverMonitoringMode="poll") as client:
        assert client.db.c.find_one({"size": size}) == {"text": "x" * size}
        server.damaged_commands.add("find")
        with pytest.raises(ProtocolError, match="checksum"):
            client.db.c.find_one({"size": size})
        assert client.pool_stats()[0]["total"] == 0
        server.damaged_commands.clear()
        assert client.db.c.find_one({"size": size})


@pytest.fixture
def wire_client() -> Iterator[WireClient]:
    with (
        Deployment.standalone() as deployment,
        WireClient(deployment.members[0].address) as wire_client,
    ):
        yield wire_client


def ping_with_checksum(is_damaged: bool) -> bytes:
    body = bson.encode({"ping": 1, "$db": "admin"})
    message = append_checksum(struct.pack("<iiiiIB", 25 + len(body), 5, 0, OP_MSG, CHECKSUM_PRESENT, 0) + body)
    return message[:-1] + bytes([message[-1] ^ is_damaged])


def test_simulated_server_answers_checksum_with_checksum(wire_client: WireClient) -> None:
    wire_client.socket.sendall(ping_with_checksum(is_damaged=False))
    header = wire_client.read(16)
    payload = wire_client.read(struct.unpack_from("<i", header)[0] - 16)
    assert struct.unpack_from("<I", payload)[0] & CHECKSUM_PRESENT
    verify(header, memoryview(payload))
    wire_client.send({"ping": 1})
    reply, _more = wire_client.receive()
    assert reply["ok"] == 1


def test_simulated_server_closes_connection_after_wrong_checksum(wire_client: WireClient) -> None:
    wire_client.socket.sendall(ping_with_checksum(is_damaged=True))
    assert wire_client.server_closes_connection()

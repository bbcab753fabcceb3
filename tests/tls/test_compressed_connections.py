"""Clients whose messages are compressed."""

from __future__ import annotations

import pytest

import gmongo
from gmongo.errors import ProtocolError
from gmongo.wire import compression
from tests.support.middlemen import Compressing
from tests.support.server import ScriptedServer

pytest.importorskip("snappy")
pytest.importorskip("zstandard")

IDS = {"snappy": 1, "zlib": 2, "zstd": 3}


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


def client_of(middleman, **options):
    return gmongo.MongoClient("127.0.0.1", middleman.port, retryReads=False, **options)


@pytest.mark.parametrize("reply_with", ["snappy", "zlib", "zstd", None])
@pytest.mark.parametrize("name", ["snappy", "zlib", "zstd"])
def test_compressed_both_ways(server, name, reply_with):
    server.hello_extra = {"compression": [name]}
    with Compressing(server, [name], reply_with) as middleman, client_of(middleman, compressors=name) as client:
        assert client.db.c.find_one({"_id": "x" * 100}) == {"_id": "x" * 100}
        client.db.c.insert_many([{"_id": number} for number in range(100)])
        assert set(middleman.compressors) == {IDS[name]}
        assert len(middleman.compressors) == 2
        client.db.command("createUser", "ann", pwd="secret", roles=[])
        client.db.command("saslStart", 1)
        assert len(middleman.compressors) == 2
    assert server.commands("handshake")[0]["compression"] == [name]
    assert len(server.commands("insert")[0]["documents"]) == 100


def test_the_first_of_the_clients_wins(server):
    server.hello_extra = {"compression": ["snappy", "zstd", "zlib"]}
    with (
        Compressing(server, []) as middleman,
        client_of(middleman, compressors=["zlib", "snappy"], zlibCompressionLevel=9) as client,
    ):
        client.db.c.find_one()
        assert middleman.compressors == [IDS["zlib"]]


@pytest.mark.parametrize(("offered", "accepted"), [(["zlib"], None), ([], ["zlib"]), (["zlib"], ["snappy"])])
def test_nothing_in_common(server, offered, accepted):
    if accepted is not None:
        server.hello_extra = {"compression": accepted}
    with Compressing(server, []) as middleman, client_of(middleman, compressors=offered) as client:
        client.db.c.find_one()
        assert middleman.compressors == []


def test_an_unacknowledged_write_is_compressed(server):
    server.hello_extra = {"compression": ["zlib"]}
    server.replies["insert"] = {"ok": 1}
    with Compressing(server, []) as middleman, client_of(middleman, compressors="zlib", w=0) as client:
        client.db.c.insert_one({"_id": 1})
        server.wait_for("insert")
        assert middleman.compressors == [IDS["zlib"]]


@pytest.mark.parametrize(
    "tamper",
    [
        lambda message: message[:20] + b"\xff\xff\xff\x00" + message[24:],  # the size
        lambda message: message[:24] + b"\x09" + message[25:],  # the compressor
        lambda message: message[:25] + bytes(len(message) - 25),  # the content
        lambda message: message[:16] + b"\xdc\x07\x00\x00" + message[20:],  # the opcode
    ],
)
def test_a_lying_server(server, tamper):
    server.hello_extra = {"compression": ["zlib"]}
    with Compressing(server, [], "zlib") as middleman, client_of(middleman, compressors="zlib") as client:
        middleman.tamper = tamper
        with pytest.raises(ProtocolError, match="OP_COMPRESSED"):
            client.db.c.find_one()
        middleman.tamper = lambda message: message
        client.db.c.find_one()
        assert client.pool_stats()[0]["total"] == 1


def test_a_compressor_whose_library_is_missing(server, monkeypatch):
    real = compression.importlib.import_module

    def import_module(name):
        if name == "snappy":
            raise ImportError
        return real(name)

    monkeypatch.setattr(compression.importlib, "import_module", import_module)
    with (
        pytest.warns(UserWarning, match=r"'snappy' is left out, .*pip install gmongo\[snappy\]"),
        gmongo.MongoClient(*server.address, compressors="snappy,zlib") as client,
    ):
        client.db.c.find_one()
    assert {tuple(hello["compression"]) for hello in server.commands("handshake")} == {("zlib",)}

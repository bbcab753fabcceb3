"""Clients compress messages, and reject malformed compressed messages."""

from __future__ import annotations

import pytest

import gmongo
from gmongo.wire import compression
from tests.support.proxies import CompressingProxy
from tests.support.server import ScriptedServer

pytest.importorskip("snappy")
pytest.importorskip("zstandard")

COMPRESSOR_IDS = {"snappy": 1, "zlib": 2, "zstd": 3}


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


def connect_client(proxy, **options):
    return gmongo.MongoClient("127.0.0.1", proxy.port, retryReads=False, **options)


@pytest.mark.parametrize("reply_compressor", ["snappy", "zlib", "zstd", None])
@pytest.mark.parametrize("name", ["snappy", "zlib", "zstd"])
def test_commands_are_compressed_except_commands_with_secrets(server, name, reply_compressor):
    server.hello_extra = {"compression": [name]}
    with CompressingProxy(server, [name], reply_compressor) as proxy, connect_client(proxy, compressors=name) as client:
        assert client.db.c.find_one({"_id": "x" * 100}) == {"_id": "x" * 100}
        client.db.c.insert_many([{"_id": number} for number in range(100)])
        assert set(proxy.compressor_ids) == {COMPRESSOR_IDS[name]}
        assert len(proxy.compressor_ids) == 2
        client.db.command("createUser", "ann", pwd="secret", roles=[])
        client.db.command("saslStart", 1)
        assert len(proxy.compressor_ids) == 2
    assert server.commands("handshake")[0]["compression"] == [name]
    assert len(server.commands("insert")[0]["documents"]) == 100


def test_unacknowledged_write_is_compressed(server):
    server.hello_extra = {"compression": ["zlib"]}
    server.replies["insert"] = {"ok": 1}
    with CompressingProxy(server, []) as proxy, connect_client(proxy, compressors="zlib", w=0) as client:
        client.db.c.insert_one({"_id": 1})
        server.wait_for("insert")
        assert proxy.compressor_ids == [COMPRESSOR_IDS["zlib"]]


def test_compressor_whose_library_is_missing_is_omitted_with_warning(server, monkeypatch):
    original_import = compression.importlib.import_module

    def import_module(name):
        if name == "snappy":
            raise ImportError
        return original_import(name)

    monkeypatch.setattr(compression.importlib, "import_module", import_module)
    with (
        pytest.warns(UserWarning, match=r"'snappy' is not used, .*pip install gmongo\[snappy\]"),
        gmongo.MongoClient(*server.address, compressors="snappy,zlib") as client,
    ):
        client.db.c.find_one()
    assert {tuple(hello["compression"]) for hello in server.commands("handshake")} == {("zlib",)}

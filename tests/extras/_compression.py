"""Exchange compressed messages with a server."""

from __future__ import annotations

import gmongo
from tests.support.proxies import CompressingProxy
from tests.support.server import ScriptedServer


def exchange_compressed_messages(name: str, number: int) -> None:
    """Send compressed requests, and receive compressed replies.

    :param name: the name of the compressor.
    :param number: the ID of the compressor in messages.
    """
    with ScriptedServer() as server:
        server.hello_extra = {"compression": [name]}
        with (
            CompressingProxy(server, [name], name) as middleman,
            gmongo.MongoClient("127.0.0.1", middleman.port, compressors=name) as client,
        ):
            text = "x" * 1000
            assert client.db.c.find_one({"_id": text}) == {"_id": text}
            assert number in middleman.compressors

"""A conversation with a server that compresses, too."""

from __future__ import annotations

import gmongo
from tests.support.middlemen import Compressing
from tests.support.server import ScriptedServer


def talk(name: str, number: int) -> None:
    """Have requests and replies compressed.

    :param name: of the compressor.
    :param number: of it, in messages.
    """
    with ScriptedServer() as server:
        server.hello_extra = {"compression": [name]}
        with (
            Compressing(server, [name], name) as middleman,
            gmongo.MongoClient("127.0.0.1", middleman.port, compressors=name) as client,
        ):
            text = "x" * 1000
            assert client.db.c.find_one({"_id": text}) == {"_id": text}
            assert number in middleman.compressors

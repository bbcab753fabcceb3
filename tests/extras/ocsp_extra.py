"""Check the revocation of certificates by stapled responses, and by the responses of an OCSP responder."""

from __future__ import annotations

import tempfile
from pathlib import Path

import gmongo
from gmongo.errors import ServerSelectionTimeoutError
from tests.support.ocsp import GOOD, REVOKED, Authority, Responder, StaplingServer


def main() -> None:
    authority = Authority()
    with tempfile.TemporaryDirectory() as folder, Responder() as responder:
        certified = authority.server(responder.url)
        file = certified.write(Path(folder) / "server.pem")
        ca = authority.own.write(Path(folder) / "ca.pem")
        for staples in (True, False):
            for status in (GOOD, REVOKED):
                responder.body = authority.response(certified, status)
                with StaplingServer(file, responder.body if staples else b"") as server:
                    assert accepts(server.port, ca) == (status is GOOD), (staples, status)
        assert responder.requests


def accepts(port: int, ca: str) -> bool:
    with gmongo.MongoClient("localhost", port, tlsCAFile=ca, serverSelectionTimeoutMS=1000) as client:
        try:
            return client.db.c.find_one({"_id": 1}) == {"_id": 1}
        except ServerSelectionTimeoutError as error:
            assert "revoked" in str(error), error
            return False

"""Tests of the memory growth of a client that receives large or malformed replies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cases import with_cases

pytestmark = pytest.mark.long

PROGRAM = """
import resource, struct, sys, zlib
import bson, gevent
from gmongo import MongoClient
from gmongo.errors import PyMongoError
from tests.hostile.callback_server import CallbackServer, good_reply, hello, message
from tests.hostile.malformed_replies import hello_message

NAME, LIMIT = sys.argv[1], int(sys.argv[2]) * 1024 * 1024

def compressed(kind, content, claimed):
    return lambda number: struct.pack("<iiiiiiB", 25 + len(content), 1, number, 2012, 2013, claimed, kind) + content

def nested(depth, kind):
    body = b"\\x05\\0\\0\\0\\0"
    head, size = [], 5
    for _ in range(depth):
        size += 8
        head.append(struct.pack("<i", size) + bytes([kind]) + b"0\\0")
    return b"".join(reversed(head)) + body + b"\\0" * depth

def keys(count):
    content = b"".join(b"\\x0a%d\\0" % number for number in range(count))
    return struct.pack("<i", len(content) + 5) + content + b"\\0"

def zstd(size):
    import zstandard
    return zstandard.ZstdCompressor().compress(b"\\0" * size)

def snappy(size):
    import snappy
    return snappy.compress(b"\\0" * size)

BIG = 45 * 1024 * 1024
REPLIES = {
    "zlib with correct size": lambda: compressed(2, zlib.compress(b"\\0" * BIG, 9), BIG),
    "zlib with too small size": lambda: compressed(2, zlib.compress(b"\\0" * 900_000_000, 9), 1000),
    "zlib with too large size": lambda: compressed(2, zlib.compress(b"\\0" * 1000, 9), BIG),
    "zlib with size above limit": lambda: compressed(2, zlib.compress(b"\\0" * BIG, 9), 2**31 - 1),
    "zstd with too small size": lambda: compressed(3, zstd(900_000_000), 1000),
    "zstd with correct size": lambda: compressed(3, zstd(BIG), BIG),
    "snappy with too small size": lambda: compressed(1, snappy(200_000_000), 1000),
    "nested documents": lambda: (lambda number: message(nested(2_000_000, 3), number)),
    "nested arrays": lambda: (lambda number: message(nested(2_000_000, 4), number)),
    "150 nested documents": lambda: (lambda number: message(nested(150, 3), number)),
    "many keys": lambda: (lambda number: message(keys(300_000), number)),
    "message length 2 GiB": lambda: (lambda number: struct.pack("<iiii", 2**31 - 1, 1, number, 2013) + b"x" * 1000),
    "message length 48 MB": lambda: (lambda number: struct.pack("<iiii", 48_000_000, 1, number, 2013) + b"x"),
}
oversized = REPLIES[NAME]()
armed = [True]

def answer(name, command, number, flags):
    if name == "hello":
        return hello_message(hello(peer.name), command, number)
    if name == "find" and armed and armed.pop():
        return oversized(number)
    return message(bson.encode(good_reply(name, command)), number)

def memory(field):
    return int(next(line for line in open("/proc/self/status") if line.startswith(field)).split()[1]) * 1024

with CallbackServer(answer) as peer:
    options = dict(replicaSet="rs", retryReads=False, socketTimeoutMS=5000)
    with MongoClient(peer.name, **options) as client:
        client.d.command("ping")
        raw = oversized(7)
        del raw
        open("/proc/self/clear_refs", "w").write("5")  # resets the peak
        before = memory("VmRSS")
        try:
            outcome = repr(client.d.c.find_one())[:80]
        except (PyMongoError, bson.errors.BSONError) as error:
            outcome = f"{type(error).__name__}: {error}"[:200].replace(f" {peer.name}:", "")
        grown = memory("VmHWM") - before
        assert client.d.c.find_one({"_id": 5}) == {"_id": 5}, "client is not usable"
print(outcome, grown // 2**20, "MB")
assert grown < LIMIT, f"{grown // 2**20} MB"
"""


# `limit` is the permitted memory growth of client and server in MiB. `limit` is higher if the client
# decompresses or decodes a large reply.
@with_cases
def test_malformed_reply_does_not_exceed_memory_limit(name: str, limit: int, outcome: str) -> None:
    command = [sys.executable, "-c", PROGRAM, name, str(limit)]
    folder = Path(__file__).parents[2]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder, check=False)
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr[-2000:]}"
    assert result.stdout.startswith(outcome)
    assert "Traceback" not in result.stderr

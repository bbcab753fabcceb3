"""The numbers at the top of the core's modules: limits, sizes, times, and what stands for something on the wire.

Many have no effect that a test could wait for, such as a piece of 64 KiB that does not hold the loop. So they are all
here, and a change of one is a change of two files.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from datetime import timedelta

from tests.unit.test_layers import MODULES

CORE = ("cmap", "execution", "sdam", "wire", "auth", "_encryption")
NUMBERS = {
    "_encryption.collections": {"_CLUSTERED": {"key": {"_id": 1}, "unique": True}, "INDEX": [("__safeContent__", 1)]},
    "_encryption.connect_callback": {"_LONGEST_ANSWER": 65_536, "_PIECE": 65_536},
    "_encryption.context": {"AT_ONCE_BELOW": 16_384},
    "_encryption.credentials": {"_TIMEOUT": 10.0, "_VALID_FOR": 60.0},
    "_encryption.encoding": {"_FLAGS_SIZE": 4, "_LONGEST_NAME": 64},
    "_encryption.handle": {"_MOST_MESSAGES": 100},
    "_encryption.hooks": {"_CHUNK_SIZE": 65_536, "_TURN": 0.001, "_REST": 5e-05},
    "_encryption.kms": {"_PORT": 443, "_KMIP_PORT": 5696},
    "_encryption.kms_tls": {"TIMEOUT": 10.0},
    "_encryption.operation": {"SPLIT_AT": 2_097_152},
    "_encryption.query_analysis": {"_SELECTION_TIMEOUT_MS": 10_000, "_LOOK_EVERY": 0.002, "_LOOKS": 500},
    "auth.aws": {"_NONCE_SIZE": 32, "_LONGEST_HOST": 255},
    "auth.aws_credentials": {"_TIMEOUT": 10.0, "_VALID_FOR": timedelta(minutes=5)},
    "auth.gssapi": {"_NO_LAYER": 1, "_LAYER_AND_SIZE": 4},
    "auth.http": {"_LONGEST": 1_048_576, "_LONGEST_SHOWN": 500},
    "auth.oidc": {"_VERSION": 1, "_PAUSE": 0.1, "_FOR_A_HUMAN": 300.0, "_FOR_A_MACHINE": 60.0},
    "auth.scram": {"_FEWEST_ITERATIONS": 4096, "_MOST_ITERATIONS": 1_000_000, "_NONCE_SIZE": 24},
    "auth.scram_keys": {"_MOST_KEPT": 8},
    "cmap.draining": {"_TIME_FOR_DUE_REPLY": 0.25},
    "cmap.metadata": {"_MAX_SIZE": 512},
    "cmap.pool": {"_HOLDERS_SHOWN": 5},
    "cmap.quoting": {"_SHORTEST": 4},
    "wire.reply_schema": {
        "INT32_MAX": 2_147_483_647,
        "INT64_MAX": 9_223_372_036_854_775_807,
        "_LARGEST_SIZE": 480_000_000,
        "_MOST_HOSTS": 256,
        "_LARGEST_CLUSTER_TIME": 1024,
        "_LONGEST_HASH": 64,
        "_SHOWN": 100,
    },
    "cmap.state": {"_FIRST_BACKOFF": 1.0},
    "cmap.upkeep": {"END": -1.0, "_SHORTEST_PAUSE": 0.1},
    "execution.overload": {"MAX_RETRIES": 5, "BASE_BACKOFF": 0.1, "MAX_BACKOFF": 10.0},
    "execution.transaction": {"_COMMIT_RETRY_WTIMEOUT": 10_000},
    "sdam.history": {"_KEPT": 100},
    "sdam.round_trip_time": {"_WEIGHT_OF_NEWEST": 0.2, "_SAMPLES_KEPT": 10},
    "sdam.selection": {
        "_PRIMARY": 0,
        "_PRIMARY_PREFERRED": 1,
        "_SECONDARY": 2,
        "_SECONDARY_PREFERRED": 3,
        "_NEAREST": 4,
        "_IDLE_WRITE_PERIOD": 10.0,
        "_SMALLEST_MAX_STALENESS": 90,
    },
    "sdam.server_selector": {"_CHOICES_KEPT": 64, "_NEGLIGIBLE": 0.001},
    "sdam.settings": {"MIN_HEARTBEAT_FREQUENCY": 0.5, "SRV_RESCAN_INTERVAL": 60.0},
    "sdam.topology": {"_GRACE": 10.0},
    "wire.address": {"_DEFAULT_PORT": 27_017, "_LARGEST_PORT": 65_535},
    "wire.checksum": {"_POLYNOMIAL": 2_197_175_160, "_PIECE": 8192},
    "wire.compression": {
        "_IN_A_THREAD": 131_072,
        "_NAME_AT": 26,
        "_SNAPPY_LONGEST_VARINT": 5,
        "NOOP": 0,
        "SNAPPY": 1,
        "ZLIB": 2,
        "ZSTD": 3,
    },
    "wire.race": {"_CONNECTION_ATTEMPT_DELAY": 0.25, "_MOST_REMEMBERED": 256, "_SHORTEST_SLEEP": 0.001},
    "wire.connect": {"_KEEPALIVE": (("TCP_KEEPIDLE", 120), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 9))},
    "wire.limit": {"_LATE": 0.05},
    "wire.message": {
        "OP_REPLY": 1,
        "OP_QUERY": 2004,
        "OP_COMPRESSED": 2012,
        "OP_MSG": 2013,
        "CHECKSUM_PRESENT": 1,
        "MORE_TO_COME": 2,
        "EXHAUST_ALLOWED": 65_536,
        "HEADER_SIZE": 16,
        "BEFORE_BODY": 21,
        "_JOIN_BELOW": 65_536,
        "_UNKNOWN_REQUIRED_FLAGS": 65_532,
        "REQUEST_IDS": range(1, 2147483648),
    },
    "wire.names": {"_EXTENSIONS": 0xA3, "_OCTETS": 4, "_DNS_NAME": 0x82, "_IP_ADDRESS": 0x87},
    "wire.ocsp.answer": {"LONGEST": 65_536},
    "wire.ocsp.inquiry": {"_MOST_RESPONDERS": 4, "_PAUSE": 60.0},
    "wire.ocsp.responder": {"_MOST_REDIRECTIONS": 3, "_MOST_READ": 131_072, "_REDIRECTIONS": (301, 302, 303, 307, 308)},
    "wire.openssl": {
        "_PIECE": 65_536,
        "_REFUSALS": {
            3: "unable to get certificate CRL",
            7: "certificate signature failure",
            9: "certificate is not yet valid",
            10: "certificate has expired",
            12: "CRL has expired",
            18: "self-signed certificate",
            19: "self-signed certificate in certificate chain",
            20: "unable to get local issuer certificate",
            21: "unable to verify the first certificate",
            23: "certificate revoked",
            24: "invalid CA certificate",
            26: "unsupported certificate purpose",
        },
    },
    "wire.reply": {
        "WHOLE_BELOW": 65_536,
        "_RUN_SIZE": 32_768,
        "_DOCUMENT": 3,
        "_ARRAY": 4,
        "_SHORTEST_DOCUMENT": 5,
        "_FIXED_SIZES": {1: 8, 6: 0, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16, 255: 0, 127: 0},
        "_LENGTH_PREFIXED": {2: 4, 13: 4, 14: 4, 5: 5, 3: 0, 4: 0, 12: 16, 15: 0},
    },
    "wire.socks5": {
        "_VERSION": 5,
        "_NO_AUTHENTICATION": 0,
        "_USERNAME_PASSWORD": 2,
        "_NONE_ACCEPTABLE": 255,
        "_CONNECT": 1,
        "_IPV4": 1,
        "_DOMAIN": 3,
        "_IPV6": 4,
        "_LONGEST": 255,
        "_REFUSALS": {
            1: "general failure of the proxy",
            2: "connection not allowed by the proxy's rules",
            3: "network unreachable",
            4: "host unreachable",
            5: "connection refused",
            6: "time to live expired",
            7: "command not supported by the proxy",
            8: "kind of address not supported by the proxy",
        },
    },
    "wire.tls": {"_CHUNK_SIZE": 65_536, "_BUFFER_SIZE": 32_768},
    "wire.transport": {
        "_READ": 1,
        "_WRITE": 2,
        "_SHORTEST": 26,
        "_BUFFER_SIZE": 65_536,
        "_KEPT_FREE": 4,
        "_CHUNK_SIZE": 524_288,
    },
}


def is_plain(value: object) -> bool:
    """Whether it is made of numbers and names alone."""
    if isinstance(value, dict):
        return is_plain([*value, *value.values()])
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return isinstance(value, (int, float, str, range, timedelta))


def numbers_of(module: str) -> dict[str, object]:
    """What the statements of a module assign that have a number in them."""
    there = importlib.import_module(f"gmongo.{module}")
    found = {}
    for statement in ast.parse(inspect.getsource(there)).body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and any(
            isinstance(each, ast.Constant) and type(each.value) in (int, float) for each in ast.walk(statement)
        ):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            found.update({name: vars(there)[name] for name in names if is_plain(vars(there)[name])})
    return found


def test_numbers() -> None:
    found = {}
    for name in MODULES:
        module = name.removeprefix("gmongo.")
        if module.partition(".")[0] in CORE:
            try:
                found[module] = numbers_of(module)
            except ImportError:  # of an extra that is not installed
                found[module] = NUMBERS.get(module, {})
    assert {module: numbers for module, numbers in found.items() if numbers} == NUMBERS

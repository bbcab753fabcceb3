"""The official tests of the URI Options and the Initial DNS Seedlist Discovery specifications.

DNS is replaced by the records that the specification lists for its tests.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from gmongo.errors import ConfigurationError
from gmongo.options import check_combination, srv
from gmongo.uri_parser import parse_uri

from .specifications import cases, files

DOMAIN = "test.build.10gen.cc"

# The number of the test host -> the ports of the host "localhost" in the same domain.
PORTS = {
    **dict.fromkeys((3, 5, 6, 7, 8, 10, 11, 20, 21), (27017,)),
    **dict.fromkeys((1, 22), (27017, 27018)),
    **dict.fromkeys((23, 24), (8000,)),
    2: (27018, 27019),
}
# The number of the test host -> hosts of another name.
OTHER_TARGETS = {
    12: ("localhost.build.10gen.cc",),
    13: ("test.build.10gen.cc",),
    14: ("localhost.not-test.build.10gen.cc",),
    15: ("localhost.test.not-build.10gen.cc",),
    16: ("localhost.test.build.not-10gen.cc",),
    17: ("localhost.test.build.10gen.not-cc",),
    18: ("localhost.sub.test.build.10gen.cc",),
    19: ("localhost.evil.build.10gen.cc", "localhost.test.build.10gen.cc"),
}
TEXTS = {
    5: ["replicaSet=repl0&authSource=thisDB"],
    6: ["replicaSet=repl0", "authSource=otherDB"],
    7: ["ssl=false"],
    8: ["authSource"],
    10: ["socketTimeoutMS=500"],
    11: ["replicaSet=repl0"],
    20: ["loadBalanced=true"],
    21: ["loadBalanced=false"],
    24: ["loadBalanced=true"],
}

IN_SECONDS = {
    "connecttimeoutms",
    "heartbeatfrequencyms",
    "maxidletimems",
    "serverselectiontimeoutms",
    "sockettimeoutms",
    "timeoutms",
}


def _srv_records() -> dict[str, list[tuple[str, int]]]:
    records = {
        f"_{'customname' if number == 22 else 'mongodb'}._tcp.test{number}.{DOMAIN}": [
            (f"localhost.{DOMAIN}.", port) for port in ports
        ]
        for number, ports in PORTS.items()
    }
    for number, targets in OTHER_TARGETS.items():
        records[f"_mongodb._tcp.test{number}.{DOMAIN}"] = [(f"{target}.", 27017) for target in targets]
    return records


SRV_RECORDS = _srv_records()
TXT_RECORDS = {f"test{number}.{DOMAIN}": texts for number, texts in TEXTS.items()}


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(name: str, record_type: str, timeout: float) -> srv.Answer:
        records: dict[str, list[Any]] = {"SRV": SRV_RECORDS, "TXT": TXT_RECORDS}[record_type]
        return srv.Answer(records.get(name, []), 86400)

    monkeypatch.setattr(srv, "lookup", lookup)


def as_a_client_parses(uri: str) -> dict[str, Any]:
    """What MongoClient does with a URI before it connects."""
    result = parse_uri(uri, warn=True)
    check_combination(result["options"], len(result["nodelist"]), uri.startswith("mongodb+srv"))
    return result


@pytest.mark.usefixtures("dns")
@pytest.mark.parametrize("case", cases("uri-options/tests"))
def test_uri_options(case: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not case["valid"]:
            with pytest.raises(ConfigurationError):
                as_a_client_parses(case["uri"])
            return
        options = as_a_client_parses(case["uri"])["options"]

    assert bool(caught) == case["warning"]
    for name, value in (case["options"] or {}).items():
        assert options[name] == (value / 1000 if name.lower() in IN_SECONDS else value)
    if case["warning"] and not case["options"]:
        assert not options.keys() - {"tls", "compressors"}, "an invalid value must be ignored"


@pytest.mark.usefixtures("dns")
@pytest.mark.parametrize("case", files("initial-dns-seedlist-discovery/tests", "*/*.json"))
def test_initial_dns_seedlist_discovery(case: dict[str, Any]) -> None:
    if case.get("error"):
        with pytest.raises(ConfigurationError):
            as_a_client_parses(case["uri"])
        return
    result = as_a_client_parses(case["uri"])

    seeds = {f"{host}:{port}" for host, port in result["nodelist"]}
    if "seeds" in case:
        assert seeds == set(case["seeds"])
    if "numSeeds" in case:
        assert len(seeds) == case["numSeeds"]
    for name, value in case["options"].items():
        assert result["options"]["tls" if name == "ssl" else name] == value
    assert_parsed_options(result, case.get("parsed_options", {}))


def assert_parsed_options(result: dict[str, Any], expected: dict[str, Any]) -> None:
    keys = {
        "user": "username",
        "password": "password",
        "db": "database",
        "auth_database": "database",
        "defaultDatabase": "database",
    }
    for name, value in expected.items():
        assert result[keys[name]] == value

"""DNS records of the official tests of initial DNS seedlist discovery and SRV polling."""

from __future__ import annotations

from tests.support.dns import Host, NameServer

DOMAIN = "test.build.10gen.cc"
LOCAL = f"localhost.{DOMAIN}"

# Queried name -> ports of its SRV records. The target of these records is LOCAL.
_PORTS = {
    **{f"_mongodb._tcp.test{number}.{DOMAIN}": [27017] for number in (3, 5, 6, 7, 8, 10, 11, 20, 21)},
    **{f"_mongodb._tcp.test{number}.{DOMAIN}": [8000] for number in (23, 24)},
    f"_mongodb._tcp.test1.{DOMAIN}": [27017, 27018],
    f"_mongodb._tcp.test2.{DOMAIN}": [27018, 27019],
    f"_customname._tcp.test22.{DOMAIN}": [
        27017,
        27018,
    ],  # The specification lists only one of these records, but its tests expect both.
}
# Queried name -> targets of its SRV records. The port of these records is 27017.
_TARGETS = {
    f"_mongodb._tcp.test12.{DOMAIN}": ["localhost.build.10gen.cc"],
    f"_mongodb._tcp.test13.{DOMAIN}": ["test.build.10gen.cc"],
    f"_mongodb._tcp.test14.{DOMAIN}": ["localhost.not-test.build.10gen.cc"],
    f"_mongodb._tcp.test15.{DOMAIN}": ["localhost.test.not-build.10gen.cc"],
    f"_mongodb._tcp.test16.{DOMAIN}": ["localhost.test.build.not-10gen.cc"],
    f"_mongodb._tcp.test17.{DOMAIN}": ["localhost.test.build.10gen.not-cc"],
    f"_mongodb._tcp.test18.{DOMAIN}": [f"localhost.sub.{DOMAIN}"],
    f"_mongodb._tcp.test19.{DOMAIN}": ["localhost.evil.build.10gen.cc", LOCAL],
    "_mongodb._tcp.build.10gen.cc": ["build.10gen.cc"],
    f"_mongodb._tcp.{DOMAIN}": [DOMAIN],
}
# Number in the queried name -> TXT records of this name. A record is a list of strings.
_TEXTS = {
    5: [["replicaSet=repl0&authSource=thisDB"]],
    6: [["replicaSet=repl0"], ["authSource=otherDB"]],
    7: [["ssl=false"]],
    8: [["authSource"]],
    10: [["socketTimeoutMS=500"]],
    11: [["replicaS", "et=rep", "l0"]],
    20: [["loadBalanced=true"]],
    21: [["loadBalanced=false"]],
    24: [["loadBalanced=true"]],
}


def add_all_records(name_server: NameServer) -> None:
    """Add all records of this module to a name server."""
    for name, ports in _PORTS.items():
        name_server.hosts[name] = [Host(LOCAL, port) for port in ports]
    for name, targets in _TARGETS.items():
        name_server.hosts[name] = [Host(target, 27017) for target in targets]
    for number, texts in _TEXTS.items():
        name_server.texts[f"test{number}.{DOMAIN}"] = texts
    name_server.addresses |= dict.fromkeys((LOCAL, f"localhost.sub.{DOMAIN}", "localhost"), "127.0.0.1")

"""DNS records of the official tests of initial DNS seedlist discovery and SRV polling.

Each line of the data file contains a queried name, and one of three fields. ``ports`` are the ports
of SRV records whose target is `LOCAL_HOST`. ``targets`` are the targets of SRV records with the
port 27017. ``texts`` are TXT records. A TXT record is a list of strings.

For ``_customname._tcp.test22``, the specification lists only one of the two SRV records, but its
tests expect both.
"""

from __future__ import annotations

from tests.support.cases import rows
from tests.support.dns import Host, NameServer

DOMAIN = "test.build.10gen.cc"
LOCAL_HOST = f"localhost.{DOMAIN}"


def add_all_records(name_server: NameServer) -> None:
    for row in rows(__file__):
        if "texts" in row:
            name_server.texts[row["name"]] = row["texts"]
        else:
            hosts = [Host(LOCAL_HOST, port) for port in row.get("ports", ())]
            name_server.hosts[row["name"]] = hosts + [Host(target, 27017) for target in row.get("targets", ())]
    name_server.addresses |= dict.fromkeys((LOCAL_HOST, f"localhost.sub.{DOMAIN}", "localhost"), "127.0.0.1")

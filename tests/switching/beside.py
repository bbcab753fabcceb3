"""The same scenes with either driver: ``python -m tests.switching.beside gmongo|pymongo URI`` prints what came of them.

PyMongo runs under monkey-patching. Everything is printed as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import gevent

LIMIT = 300  # milliseconds


def interrupted(driver: Any, uri: str) -> dict[str, Any]:
    """Twenty finds that hang on the server, each ended by somebody's time-out."""
    seen = watch(driver)
    with driver.MongoClient(uri, event_listeners=[seen], directConnection=True) as client:
        client.test.c.insert_one({})
        hang = {"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 100}
        client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data=hang)
        seen.begun = seen.ended = 0
        same = [is_mine(client) for _ in range(20)]
        client.admin.command("configureFailPoint", "failCommand", mode="off")
        client.test.c.find_one()
        return {"same object": all(same), "no end event": seen.begun - seen.ended, "blamed": seen.blamed}


def is_mine(client: Any) -> bool:
    mine = gevent.Timeout(0.02)
    try:
        with mine:
            client.test.c.find_one()
    except BaseException as error:
        return error is mine
    return False


def held(driver: Any, uri: str) -> dict[str, Any]:
    """The application holds the loop for three times as long as the limits of monitors and handshakes."""
    seen = watch(driver)
    options = {"connectTimeoutMS": LIMIT, "heartbeatFrequencyMS": 500, "directConnection": True}
    with driver.MongoClient(uri, event_listeners=[seen], **options) as client:
        client.test.c.insert_one({})
        for number in range(5):
            gevent.sleep(0.1 * number)
            time.sleep(3 * LIMIT / 1000)
            gevent.sleep(0.05)
        return {"blamed": seen.blamed}


def watch(driver: Any) -> Any:
    """Counts commands that begin and end, and what is held against the server."""
    monitoring = driver.monitoring

    class Seen(monitoring.CommandListener, monitoring.ServerListener, monitoring.ServerHeartbeatListener):  # type: ignore[misc]
        begun = ended = blamed = 0

        def started(self, event: Any) -> None:
            self.begun += hasattr(event, "command_name")

        def succeeded(self, event: Any) -> None:
            self.ended += hasattr(event, "command_name")

        def failed(self, event: Any) -> None:
            self.ended += hasattr(event, "command_name")

        def description_changed(self, event: Any) -> None:
            self.blamed += not event.new_description.is_server_type_known

        def opened(self, event: Any) -> None:
            pass

        closed = opened

    return Seen()


def main(name: str, uri: str) -> None:
    """All scenes with one driver."""
    if name == "pymongo":
        from gevent import monkey

        monkey.patch_all()
        import pymongo as driver
    else:
        import gmongo as driver  # type: ignore[no-redef]
        import gmongo.monitoring
    print(json.dumps({"interrupted": interrupted(driver, uri), "held": held(driver, uri)}))


if __name__ == "__main__":
    main(*sys.argv[1:])

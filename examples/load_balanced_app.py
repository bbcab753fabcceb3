"""An application behind a load balancer: ``python -m examples.load_balanced_app``.

Greenlets place orders in transactions and read them back with cursors, while a listener watches on which service each
command runs. Works on the services that MONGODB_URI names, which needs ``loadBalanced=true``, or on two simulated ones.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Hashable
from contextlib import ExitStack
from typing import Any

from gevent.pool import Pool

from gmongo import MongoClient
from gmongo.client_session import ClientSession
from gmongo.errors import AutoReconnect
from gmongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent
from gmongo.testing import URI_VARIABLE, Deployment

Client = MongoClient[dict[str, Any]]
# They may run elsewhere: a commit that is tried again, and the abort of a transaction that has failed already.
_ENDINGS = ("commitTransaction", "abortTransaction")


class ServiceWatch(CommandListener):
    """Notes which service each cursor and each transaction has talked to.

    :ivar commands: service -> number of commands.
    """

    def __init__(self) -> None:
        self.commands: Counter[Any] = Counter()
        self._used: defaultdict[Hashable, set[Any]] = defaultdict(set)

    def started(self, event: CommandStartedEvent) -> None:
        """Note a command, and the cursor or transaction it belongs to."""
        self.commands[event.service_id] += 1
        if event.command_name == "getMore":
            self._used["cursor", event.command["getMore"]].add(event.service_id)
        elif "autocommit" in event.command and event.command_name not in _ENDINGS:
            session = bytes(event.command["lsid"]["id"])
            self._used["transaction", session, event.command["txnNumber"]].add(event.service_id)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """Note the number of a new cursor."""
        if event.command_name == "find" and event.reply["cursor"]["id"]:
            self._used["cursor", event.reply["cursor"]["id"]].add(event.service_id)

    def failed(self, event: CommandFailedEvent) -> None:
        """A failure tells nothing new."""

    @property
    def watched(self) -> int:
        """How many cursors and transactions there were."""
        return len(self._used)

    @property
    def mixed(self) -> list[Hashable]:
        """Those that talked to several services. There must be none."""
        return [each for each, services in self._used.items() if len(services) > 1]


class Shop:
    """The application.

    :param client: of the services.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.orders = client.gmongo_examples.orders
        self.stock = client.gmongo_examples.stock

    def open(self, pieces: int) -> None:
        """Begin with no orders and so many pieces in stock."""
        self.orders.drop()
        self.stock.drop()
        self.client.gmongo_examples.create_collection("orders")
        self.stock.insert_one({"_id": "piece", "left": pieces})

    def order(self, number: int) -> None:
        """Sell one piece: both documents change, or none."""

        def sell(session: ClientSession) -> None:
            self.orders.insert_one({"_id": number}, session=session)
            self.stock.update_one({"_id": "piece"}, {"$inc": {"left": -1}}, session=session)

        with self.client.start_session() as session:
            session.with_transaction(sell)

    def listed(self) -> list[int]:
        """The numbers of all orders, read in small batches; from the beginning again if the service is lost."""
        while True:
            try:
                with self.orders.find(batch_size=5) as cursor:
                    return [order["_id"] for order in cursor]
            except AutoReconnect:
                continue

    def serve(self, number: int) -> None:
        """What one customer does."""
        self.order(number)
        assert number in self.listed()


def main(customers: int = 60, at_once: int = 10) -> int:
    """Let the customers come, and print what happened; returns the exit status."""
    watch = ServiceWatch()
    with ExitStack() as stack:
        uri = os.environ.get(URI_VARIABLE) or stack.enter_context(Deployment.load_balanced(2)).uri
        client: Client = stack.enter_context(MongoClient(uri, event_listeners=[watch]))
        shop = Shop(client)
        shop.open(customers)
        Pool(at_once).map(shop.serve, range(customers))
        left = shop.stock.find_one()
        print("orders:", len(shop.listed()), "pieces left:", left and left["left"])
    for service, number in watch.commands.items():
        print(f"service {service}: {number} commands")
    print(f"{watch.watched} cursors and transactions, {len(watch.mixed)} of them on several services")
    return 1 if watch.mixed else 0


if __name__ == "__main__":
    sys.exit(main())

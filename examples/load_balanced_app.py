"""An application behind a load balancer: ``python -m examples.load_balanced_app``.

Greenlets place orders in transactions and read the orders with cursors, while a listener records the service of each
command. MONGODB_URI must contain ``loadBalanced=true``. Without MONGODB_URI, the program starts two simulated services.
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
# Commands that may run on a second service: a retried commit, the abort of a failed transaction.
_END_COMMANDS = ("commitTransaction", "abortTransaction")


class ServiceWatch(CommandListener):
    """Listener that records the services that each cursor and each transaction used.

    :ivar command_counts: the number of commands of each service.
    """

    def __init__(self) -> None:
        self.command_counts: Counter[Any] = Counter()
        self._services: defaultdict[Hashable, set[Any]] = defaultdict(set)

    def started(self, event: CommandStartedEvent) -> None:
        """Record the service of a command, and the cursor or transaction of the command."""
        self.command_counts[event.service_id] += 1
        if event.command_name == "getMore":
            self._services["cursor", event.command["getMore"]].add(event.service_id)
        elif "autocommit" in event.command and event.command_name not in _END_COMMANDS:
            session = bytes(event.command["lsid"]["id"])
            self._services["transaction", session, event.command["txnNumber"]].add(event.service_id)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """Record the ID of a new cursor."""
        if event.command_name == "find" and event.reply["cursor"]["id"]:
            self._services["cursor", event.reply["cursor"]["id"]].add(event.service_id)

    def failed(self, event: CommandFailedEvent) -> None:
        """Ignore the failure of a command, because :meth:`started` has recorded the service."""

    @property
    def count(self) -> int:
        """The number of cursors and transactions."""
        return len(self._services)

    @property
    def on_several_services(self) -> list[Hashable]:
        """The cursors and transactions that used several services. A non-empty list shows an error of the driver."""
        return [each for each, services in self._services.items() if len(services) > 1]


class Shop:
    """Shop that sells pieces of one product.

    :param client: the client that connects to the services.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.orders = client.gmongo_examples.orders
        self.stock = client.gmongo_examples.stock

    def open(self, piece_count: int) -> None:
        """Remove all orders, and store the number of pieces in stock."""
        self.orders.drop()
        self.stock.drop()
        self.client.gmongo_examples.create_collection("orders")
        self.stock.insert_one({"_id": "piece", "left": piece_count})

    def sell_piece(self, number: int) -> None:
        """Sell one piece in a transaction."""

        def sell(session: ClientSession) -> None:
            self.orders.insert_one({"_id": number}, session=session)
            self.stock.update_one({"_id": "piece"}, {"$inc": {"left": -1}}, session=session)

        with self.client.start_session() as session:
            session.with_transaction(sell)

    def order_numbers(self) -> list[int]:
        """Return the numbers of all orders. After the loss of the connection, read all numbers again."""
        while True:
            try:
                with self.orders.find(batch_size=5) as cursor:
                    return [order["_id"] for order in cursor]
            except AutoReconnect:
                continue

    def serve_customer(self, number: int) -> None:
        """Place the order of one customer, and check that the list of orders contains the order."""
        self.sell_piece(number)
        assert number in self.order_numbers()


def main(customer_count: int = 60, concurrency: int = 10) -> int:
    """Serve the customers, print the results, and return the exit status."""
    watch = ServiceWatch()
    with ExitStack() as stack:
        uri = os.environ.get(URI_VARIABLE) or stack.enter_context(Deployment.load_balanced(2)).uri
        client: Client = stack.enter_context(MongoClient(uri, event_listeners=[watch]))
        shop = Shop(client)
        shop.open(customer_count)
        Pool(concurrency).map(shop.serve_customer, range(customer_count))
        stock = shop.stock.find_one()
        print("orders:", len(shop.order_numbers()), "pieces left:", stock and stock["left"])
    for service, command_count in watch.command_counts.items():
        print(f"service {service}: {command_count} commands")
    print(f"{watch.count} cursors and transactions, {len(watch.on_several_services)} of them on several services")
    return 1 if watch.on_several_services else 0


if __name__ == "__main__":
    sys.exit(main())

"""Pool generations. Each clear makes older connections stale (CMAP-31, CMAP-166 to CMAP-168)."""

from __future__ import annotations

from bson.objectid import ObjectId


class Generations:
    """Generation of a pool, and of each service behind a load balancer."""

    def __init__(self) -> None:
        self.current = 0
        self._services: dict[ObjectId, list[int]] = {}  # service ID -> [generation, connection count]

    def generation_of(self, service_id: ObjectId | None) -> int:
        """Return the current generation of a service, or of the pool if `service_id` is None."""
        if service_id is None:
            return self.current
        entry = self._services.get(service_id)
        return entry[0] if entry else 0

    def advance(self, service_id: ObjectId | None = None) -> None:
        """Start a new generation of the pool or of a known service (CMAP-A25)."""
        if service_id is None:
            self.current += 1
        elif service_id in self._services:
            self._services[service_id][0] += 1

    def add_connection(self, service_id: ObjectId) -> int:
        """Increment the connection count of a service, and return the generation of the service."""
        entry = self._services.setdefault(service_id, [0, 0])
        entry[1] += 1
        return entry[0]

    def remove_connection(self, service_id: ObjectId | None) -> None:
        """Decrement the connection count of a service. Remove a service without connections."""
        if service_id in self._services:
            entry = self._services[service_id]
            entry[1] -= 1
            if entry[1] == 0:
                del self._services[service_id]

"""Connections and the pools that hold them (Connection Monitoring and Pooling).

Reading order: `state` (the sets of connections, what may be handed out), `wait_queue` (which waiter is next), `pool`
(both of them with sockets and events), `upkeep` (the background run), `connection`, `handshake`.
"""

"""Connections and the pools that hold them (Connection Monitoring and Pooling).

Reading order: `inventory` (the state, the sets, what may be handed out), `wait_queue` (who is next), `pool` (both of
them with sockets and events), `upkeep` (the background run), `connection`, `handshake`.
"""

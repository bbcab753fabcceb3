"""Connections and connection pools (Connection Monitoring and Pooling).

Read the modules in this order: `pool_state` (the sets of connections), `wait_queue` (the order of the
waiters), `pool` (I/O, events and background greenlets), `connection`, `handshake`.
"""

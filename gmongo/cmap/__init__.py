"""Connections and the pools that hold them (Connection Monitoring and Pooling).

Reading order: `pool` (the state machine), `wait_queue` (who is next), `connection`, `handshake`, `upkeep` (the
background run).
"""

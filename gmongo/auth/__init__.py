"""Authentication: what is said on a connection to prove the identity of the client, and where credentials come from.

A mechanism is given a function that sends a command and returns its reply; it knows nothing of connections and pools.
"""

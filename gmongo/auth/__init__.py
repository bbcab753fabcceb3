"""Authentication of connections, and sources of credentials.

A mechanism receives a function that sends a command and returns the reply. It is independent of connections and pools.
"""

"""Authentication of connections, and sources of credentials.

A mechanism receives a function that sends a command and returns the reply. Mechanisms are therefore independent of
connections and pools.
"""

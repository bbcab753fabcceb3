"""Authentication mechanisms, and sources of credentials.

A mechanism receives a function that sends a command and returns its reply. Mechanisms do not depend on connections.
"""

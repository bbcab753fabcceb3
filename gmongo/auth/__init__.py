"""Authentication mechanisms, and sources of credentials.

A mechanism receives a function that sends a command and returns the reply of the server.
"""

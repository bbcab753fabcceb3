"""Execution of operations: select a server, check out a connection, run the command, and retry."""

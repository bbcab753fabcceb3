"""Execution of commands: select a server, check out a connection, run the command, classify the reply, retry."""

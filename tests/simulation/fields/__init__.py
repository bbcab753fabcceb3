"""The fields of commands: the table of the simulation is recorded from a server, and compared with the server."""

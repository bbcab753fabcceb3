"""The fields of commands: the simulation's table, recorded from a server and compared with a server."""

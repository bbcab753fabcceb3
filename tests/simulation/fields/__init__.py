"""The table of command fields of the simulation. A program records the table from a server, or compares the errors."""

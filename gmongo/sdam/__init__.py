"""Server discovery and monitoring, and server selection.

These modules contain only values and pure functions: `server_description`, `topology_description`,
`transitions`, `selection`, `hello_reply`, `settings`. The other modules change state or run
greenlets.
"""

"""Server discovery and monitoring, and server selection.

Modules with pure functions and values: `server_description`, `topology_description`, `transitions`, `selection`,
`network_errors`. Modules with state or greenlets: `topology`, `server_selector`,
`application_errors`, `server`, `owned_monitor`, `monitor`, `rtt_monitor`, `srv_monitor`.
"""

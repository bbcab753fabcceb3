"""Server discovery and monitoring, and server selection.

These modules have pure functions: `server_description`, `topology_description`, `transitions`,
`selection`. These modules have state or greenlets: `topology`, `server_selector`,
`application_errors`, `server`, `owned_monitor`, `monitor`, `rtt_monitor`, `srv_monitor`.
"""

"""Server discovery and monitoring, and server selection.

Pure: `server_description`, `topology_description`, `transitions`, `selection`, `network_errors`, `round_trip_time`.
State and greenlets: `topology`, `server_selector`, `application_errors`, `server`, `monitor`,
`rtt_monitor`, `srv_monitor`.
"""

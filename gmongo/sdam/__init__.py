"""Server discovery and monitoring, and server selection.

Pure: `server_description`, `topology_description`, `transitions`, `selection`, `error_rules`, `round_trip_time`.
Greenlets and state around them: `monitor`, `rtt_monitor`, `server`, `topology`.
"""

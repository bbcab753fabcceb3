"""A service with metrics and a status page."""

"""Lowest layer of the driver: message bytes and sockets.

This layer does not depend on commands, pools or servers.
"""

"""Lowest layer of the driver: message bytes and sockets, without commands, pools and servers."""

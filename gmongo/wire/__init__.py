"""Lowest layer: message bytes and sockets. It does not depend on commands, pools or servers."""

"""The commands that are about the server rather than about its data."""

"""Commands that concern the server, and not the stored data."""

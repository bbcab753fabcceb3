"""Commands on the server instead of its data."""

"""Scenarios for gmongo, and for PyMongo with monkey-patching, each in its own process."""

"""Comparison of gmongo with PyMongo: the same calls with both drivers on the same server."""

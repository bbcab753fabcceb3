"""Comparison of gmongo and PyMongo on other servers with MongoDB's protocol."""

"""Comparison of gmongo and PyMongo on engines, which are other servers with MongoDB's wire protocol."""

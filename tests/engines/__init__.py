"""Comparison of gmongo and PyMongo on engines: servers other than MongoDB that use MongoDB's wire protocol."""

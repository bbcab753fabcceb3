"""Comparison of gmongo and PyMongo on engines: servers that are not MongoDB, but use its
wire protocol.
"""

"""Comparison of gmongo with PyMongo: each call runs with gmongo and with PyMongo on the
same server.
"""

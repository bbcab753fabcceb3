"""Runs of PyMongo's tests with gmongo (``gmongo.as_pymongo``), and with PyMongo for comparison."""

"""Tests of PyMongo with ``gmongo.as_pymongo``, and with PyMongo for comparison."""
